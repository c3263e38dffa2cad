"""The page of syncs with the directory, for administrators."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_POST, require_safe

from provisioner.directory.actions.syncs import directory_sync_approve
from provisioner.directory.deferring import queue_sync
from provisioner.directory.models import DirectorySync
from provisioner.directory.people import sources
from provisioner.directory.queries import newest_syncs
from provisioner.identities.absence import closes_absent_people
from provisioner.web.http import WebRequest, administrators_only
from provisioner.web.posting import acted, done

QUEUED = "Queued. It begins in a few seconds: reload this page to see what it finds."
WAITING = "A sync is queued already. Reload this page to see what it finds."


@require_safe
@administrators_only
def directory_sync(request: WebRequest) -> HttpResponse:
    """Show what the newest sync did or asks for, and those before."""
    directory = settings.DIRECTORY
    asked, closes_absent = [source.name for source in sources()], closes_absent_people()
    context = {
        "syncs": newest_syncs(request.user),
        "sources": asked,
        "is_followed": bool(asked) or closes_absent,
        "has_no_sync": directory is not None and not directory.bind_dn,
        "provider": settings.OIDC_NAME if settings.OIDC_ISSUER else "",
        "absent_days": settings.OIDC_ABSENT_DAYS if closes_absent else 0,
        "has_no_end": bool(settings.OIDC_ISSUER) and not closes_absent,
    }
    return render(request, "directory/syncs.html", context)


@require_POST
@administrators_only
def directory_sync_start(request: WebRequest) -> HttpResponse:
    """Queue a sync, or a preview that changes nothing."""
    is_queued = queue_sync(is_preview=request.POST.get("preview") == "on")
    return done(request, QUEUED if is_queued else WAITING, "directory-sync")


@require_POST
@administrators_only
def directory_sync_approval(request: WebRequest, pk: int) -> HttpResponse:
    """Approve what a sync asks for, and queue the one that does it."""
    sync = get_object_or_404(DirectorySync, pk=pk)

    def approve() -> None:
        directory_sync_approve(by=request.user, sync=sync)
        queue_sync(is_preview=False)

    return acted(request, approve, "directory-sync", said=f"Approved. {QUEUED}")
