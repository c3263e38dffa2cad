"""Pages that share a workspace, and open its directory."""

from __future__ import annotations

from functools import partial

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from provisioner.sites.models import OpenTo
from provisioner.web.http import WebRequest, posted
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST
from provisioner.workspaces.actions import sharing
from provisioner.workspaces.forms import OpenForm, ShareForm
from provisioner.workspaces.models import Share, Workspace
from provisioner.workspaces.sharing import names_to_share_with
from provisioner.workspaces.views.guards import for_changing

LONGEST_NAME = 150


@require_safe_or_POST
@for_changing
def workspace_share(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Share a workspace with a person or a team."""
    form = ShareForm(posted(request))
    act = sharing.workspace_share
    if share := form.tried(act, by=request.user, workspace=workspace):
        said = f"{workspace.name} is shared with {share}."
        return done(request, said, "workspace-detail", workspace.pk)
    return form_page(request, "workspaces/share.html", form, workspace=workspace)


@require_safe
@for_changing
def workspace_share_names(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Complete the name of a person or a team, for htmx."""
    names = names_to_share_with(
        workspace,
        begins=request.GET.get("name", "")[:LONGEST_NAME],
        of_teams=request.GET.get("kind") == "team",
    )
    return render(request, "workspaces/_share_names.html", {"names": names})


@require_POST
@for_changing
def workspace_open(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Set who may enter the directory of a workspace."""
    form = OpenForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose who may enter it.")
        return redirect("workspace-detail", workspace.pk)
    to = OpenTo(form.cleaned_data["to"])
    act = partial(sharing.workspace_open, by=request.user, workspace=workspace, to=to)
    said = f"{workspace.name} will be open to {to.label} within seconds."
    return acted(request, act, "workspace-detail", workspace.pk, said=said)


@require_POST
@for_changing
def workspace_unshare(
    request: WebRequest, workspace: Workspace, share_pk: int
) -> HttpResponse:
    """Revoke a share."""
    share = get_object_or_404(
        Share.objects.select_related("workspace__owner", "person", "team"),
        workspace=workspace,
        pk=share_pk,
    )
    sharing.workspace_unshare(by=request.user, share=share)
    said = f"{workspace.name} is no longer shared with {share}."
    return done(request, said, "workspace-detail", workspace.pk)
