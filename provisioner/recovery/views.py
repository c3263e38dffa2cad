"""The page that restores a workspace from a copy."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from provisioner.accounts import permissions
from provisioner.copies.queries import copies_visible_to, last_arrived
from provisioner.recovery.actions import workspace_recover
from provisioner.recovery.forms import RecoverForm
from provisioner.recovery.queries import answers
from provisioner.web.http import WebRequest, posted
from provisioner.web.posting import form_page, require_safe_or_POST
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.views import for_changing


@require_safe_or_POST
@for_changing
def workspace_recovery(
    request: WebRequest, workspace: Workspace, copy_pk: int
) -> HttpResponse:
    """Say what is restored and what is missing, and restore it."""
    copies = copies_visible_to(request.user).filter(workspace=workspace)
    copy = get_object_or_404(copies, pk=copy_pk)
    is_answering = answers(workspace.site)
    may_confirm = is_answering and permissions.can_administer(request.user)
    form = RecoverForm(posted(request), may_confirm=may_confirm)
    if made := form.tried(workspace_recover, by=request.user, copy=copy):
        return redirect("workspace-detail", made.pk)
    return form_page(
        request,
        "recovery/create.html",
        form,
        workspace=workspace,
        copy=copy,
        last=last_arrived(copy),
        is_answering=is_answering,
    )
