"""The page that clones a workspace."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect

from provisioner.cloning.actions import workspace_clone
from provisioner.cloning.forms import CloneForm
from provisioner.web.http import WebRequest, posted
from provisioner.web.posting import form_page, require_safe_or_POST
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.views import for_changing


@require_safe_or_POST
@for_changing
def workspace_clone_create(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Say what a clone gets, and clone the workspace."""
    form = CloneForm(
        posted(request),
        source=workspace,
        initial={"snapshot": request.GET.get("snapshot")},
    )
    if made := form.tried(workspace_clone, by=request.user, source=workspace):
        return redirect("workspace-detail", made.pk)
    return form_page(request, "cloning/create.html", form, workspace=workspace)
