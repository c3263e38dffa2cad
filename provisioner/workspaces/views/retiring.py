"""Bringing a workspace back, and going on with one that failed."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from provisioner.lib.refusals import ActionRefused
from provisioner.web.http import WebRequest
from provisioner.workspaces.actions import retiring
from provisioner.workspaces.queries import workspaces_visible_to
from provisioner.workspaces.views.guards import for_changing


@require_POST
@for_changing
def workspace_restore(request: WebRequest, pk: int) -> HttpResponse:
    """Bring a workspace back from the trash, or out of its retirement."""
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    try:
        retiring.workspace_restore(by=request.user, workspace=workspace)
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
    return redirect("workspace-detail", workspace.pk)


@require_POST
@for_changing
def workspace_retry(request: WebRequest, pk: int) -> HttpResponse:
    """Go on with a workspace that failed."""
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    try:
        retiring.workspace_retry(by=request.user, workspace=workspace)
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
    return redirect("workspace-detail", workspace.pk)
