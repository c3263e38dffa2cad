"""Abandoned workspaces, for administrators."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.leases import abandoned
from provisioner.leases.lists import ABANDONED
from provisioner.web.bulk import MOST_AT_A_TIME
from provisioner.web.http import WebRequest, administrators_only, digest
from provisioner.web.lists.answers import list_answer
from provisioner.web.posting import require_safe_or_POST


@require_safe_or_POST
@administrators_only
def abandoned_list(request: WebRequest) -> HttpResponseBase:
    """List what looks abandoned, and why. Mail owners or retire in bulk."""
    progress = abandoned.retirements_of_abandoned(request.user)
    lines = progress.lines[:MOST_AT_A_TIME]
    context = {
        "reclaimable": abandoned.reclaimable(request.user),
        "progress": progress,
        "pks": ",".join(str(line.workspace.pk) for line in lines),
    }
    return list_answer(request, ABANDONED, "leases/abandoned.html", context)


@require_safe
@administrators_only
@vary_on_headers("HX-Request")
def abandoned_progress(request: WebRequest) -> HttpResponse:
    """Show the progress of a bulk retirement."""
    named = request.GET.get("workspaces", "").split(",")[:MOST_AT_A_TIME]
    pks = [int(pk) for pk in named if pk.isascii() and pk.isdecimal() and len(pk) < 19]
    progress = abandoned.retirement_progress(request.user, pks=pks)
    context: dict[str, object] = {
        "progress": progress,
        "pks": ",".join(map(str, pks)),
    }
    if not request.htmx:
        return render(request, "leases/abandoned_progress.html", context)
    context["has_changed"] = request.GET.get("said") != digest(progress.announcement)
    return render(request, "leases/_abandoned_progress.html", context)
