"""Pages that share a workspace, and open its directory."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from provisioner.lib.refusals import ActionRefused
from provisioner.sites.models import OpenTo
from provisioner.web.http import WebRequest, posted
from provisioner.workspaces.actions import sharing
from provisioner.workspaces.forms import OpenForm, ShareForm
from provisioner.workspaces.models import Share
from provisioner.workspaces.queries import workspaces_visible_to
from provisioner.workspaces.sharing import names_to_share_with
from provisioner.workspaces.views.guards import for_changing

LONGEST_NAME = 150


@require_http_methods(["GET", "HEAD", "POST"])
@for_changing
def workspace_share(request: WebRequest, pk: int) -> HttpResponse:
    """Share a workspace with a person or a team."""
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    form = ShareForm(posted(request))
    share = form.tried(
        lambda: sharing.workspace_share(
            by=request.user, workspace=workspace, **form.reader()
        )
    )
    if share is not None:
        messages.success(request, f"{workspace.name} is shared with {share}.")
        return redirect("workspace-detail", pk)
    context = {"form": form, "workspace": workspace}
    return render(request, "workspaces/share.html", context, status=form.http_code)


@require_safe
@for_changing
def workspace_share_names(request: WebRequest, pk: int) -> HttpResponse:
    """Complete the name of a person or a team, for htmx."""
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    names = names_to_share_with(
        workspace,
        begins=request.GET.get("name", "")[:LONGEST_NAME],
        of_teams=request.GET.get("kind") == "team",
    )
    return render(request, "workspaces/_share_names.html", {"names": names})


@require_POST
@for_changing
def workspace_open(request: WebRequest, pk: int) -> HttpResponse:
    """Set who may enter the directory of a workspace."""
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    form = OpenForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose who may enter it.")
        return redirect("workspace-detail", pk)
    to = OpenTo(form.cleaned_data["to"])
    try:
        sharing.workspace_open(by=request.user, workspace=workspace, to=to)
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
    else:
        said = f"{workspace.name} will be open to {to.label} within seconds."
        messages.success(request, said)
    return redirect("workspace-detail", pk)


@require_POST
@for_changing
def workspace_unshare(request: WebRequest, pk: int, share_pk: int) -> HttpResponse:
    """Revoke a share."""
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    share = get_object_or_404(
        Share.objects.select_related("workspace__owner", "person", "team"),
        workspace=workspace,
        pk=share_pk,
    )
    sharing.workspace_unshare(by=request.user, share=share)
    messages.success(request, f"{workspace.name} is not shared with {share} any more.")
    return redirect("workspace-detail", pk)
