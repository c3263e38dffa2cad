"""Pages that check, retire, restore, purge, retry and share workspaces."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Concatenate

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import HttpResponseClientRedirect

from provisioner.accounts.models import User
from provisioner.lib.refusals import ActionRefused
from provisioner.sites.models import OpenTo
from provisioner.web.forms import AskingForm
from provisioner.web.http import P, WebRequest, posted
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST
from provisioner.workspaces.actions import checking, retiring, sharing
from provisioner.workspaces.ending_pages import (
    purge_steps,
    retire_steps,
    why_not_purged,
    why_not_retired,
)
from provisioner.workspaces.forms import OpenForm, ShareForm, WorkspaceRetireForm
from provisioner.workspaces.models import Share, Workspace
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.queries import trash_seconds_of, workspaces_visible_to
from provisioner.workspaces.sharing import names_to_share_with
from provisioner.workspaces.unsubmitted import find_unsubmitted_work

# The pages that show what was found, by what is to be done with it.
SHOWN_AT = {"transfer": "workspace-transfer", "retire": "workspace-retire"}

LONGEST_NAME = 150


def workspace_for(user: User, pk: int) -> Workspace:
    """Return a workspace that the person may see, or answer with the 404 page."""
    return get_object_or_404(workspaces_visible_to(user), pk=pk)


def for_changing(
    view: Callable[Concatenate[WebRequest, Workspace, P], HttpResponseBase],
) -> Callable[..., HttpResponseBase]:
    """Give a view the workspace `pk` of its URL.

    Answer with the 404 page if the person may not see it, with the 403 page if the
    person may see but not change it.
    """

    @wraps(view)
    def guarded(
        request: WebRequest, /, pk: int, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        workspace = workspace_for(request.user, pk)
        if not can_change_workspace(request.user, workspace):
            raise PermissionDenied(
                "You may view this workspace. Only its owner can change it."
            )
        return view(request, workspace, *args, **kwargs)

    return guarded


@require_safe_or_POST
@vary_on_headers("HX-Request")
@for_changing
def workspace_check(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Start a check; htmx gets its progress or what it found."""
    if request.method == "POST":
        return _begun(request, workspace)
    work = find_unsubmitted_work(request.user, pk=workspace.pk)
    if work is None:
        raise Http404
    if not request.htmx:
        page = reverse("workspace-detail", args=[workspace.pk])
        return redirect(f"{page}#unsubmitted")
    context = {
        "unsubmitted": work,
        "workspace": work.workspace,
        "announcement": work.announcement,
    }
    return render(request, "workspaces/_unsubmitted.html", context)


def _begun(request: WebRequest, workspace: Workspace) -> HttpResponse:
    try:
        checking.workspace_check(by=request.user, workspace=workspace)
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
        page = reverse("workspace-detail", args=[workspace.pk])
        return HttpResponseClientRedirect(page) if request.htmx else redirect(page)
    # A request of htmx is one still after the redirection, and gets its part.
    shown_at = SHOWN_AT.get(request.POST.get("then", ""), "workspace-check")
    return redirect(shown_at, workspace.pk)


@require_safe_or_POST
@vary_on_headers("HX-Request")
@for_changing
def workspace_retire(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Confirm a retirement, with a choice if there is unsubmitted work.

    htmx gets only what was found and the choices.
    """
    work = find_unsubmitted_work(request.user, pk=workspace.pk)
    if work is None:
        raise Http404
    form = WorkspaceRetireForm(
        posted(request),
        has_unsubmitted=bool(work.found),
        can_be_rescued=work.can_be_rescued,
    )
    act = retiring.workspace_retire
    if form.tried(act, by=request.user, workspace=work.workspace):
        return redirect("workspace-detail", workspace.pk)
    is_part = request.htmx and not form.is_bound
    return form_page(
        request,
        "workspaces/_retire.html" if is_part else "workspaces/retire.html",
        form,
        unsubmitted=work,
        workspace=work.workspace,
        announcement=work.announcement if is_part else "",
        why_not=why_not_retired(work.workspace),
        steps=retire_steps(
            work,
            has_choice="unsubmitted" in form.fields,
            trash_seconds=trash_seconds_of(work.workspace),
        ),
    )


@require_safe_or_POST
@for_changing
def workspace_purge(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Confirm a purge."""
    form = AskingForm(posted(request))
    if form.tried(retiring.workspace_purge, by=request.user, workspace=workspace):
        return redirect("workspace-detail", workspace.pk)
    return form_page(
        request,
        "workspaces/purge.html",
        form,
        workspace=workspace,
        why_not=why_not_purged(workspace),
        steps=purge_steps(workspace),
    )


@require_POST
@for_changing
def workspace_restore(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Restore a workspace from the trash, or out of its retirement."""
    act = partial(retiring.workspace_restore, by=request.user, workspace=workspace)
    return acted(request, act, "workspace-detail", workspace.pk)


@require_POST
@for_changing
def workspace_retry(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Retry the failed operation of a workspace."""
    act = partial(retiring.workspace_retry, by=request.user, workspace=workspace)
    return acted(request, act, "workspace-detail", workspace.pk)


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
