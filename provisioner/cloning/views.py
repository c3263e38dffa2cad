"""The page that clones a workspace."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect

from provisioner.cloning.actions import workspace_clone
from provisioner.cloning.forms import CloneForm
from provisioner.web.http import WebRequest, posted
from provisioner.web.posting import form_page, require_safe_or_POST
from provisioner.workspaces.permissions import (
    can_change_workspace,
    can_clone_workspace,
)
from provisioner.workspaces.views import workspace_for


@require_safe_or_POST
def workspace_clone_create(request: WebRequest, pk: int) -> HttpResponse:
    """Say what a clone gets, and clone the workspace."""
    workspace = workspace_for(request.user, pk)
    if not can_clone_workspace(request.user, workspace):
        raise PermissionDenied(
            "You may view this workspace. Its owner can share it for cloning."
        )
    form = CloneForm(
        posted(request),
        source=workspace,
        may_change=can_change_workspace(request.user, workspace),
        initial={"snapshot": request.GET.get("snapshot")},
    )
    if made := form.tried(workspace_clone, by=request.user, source=workspace):
        return redirect("workspace-detail", made.pk)
    return form_page(request, "cloning/create.html", form, workspace=workspace)
