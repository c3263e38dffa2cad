"""Pages that retire, restore, purge and retry workspaces."""

from __future__ import annotations

from functools import partial

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST
from django.views.decorators.vary import vary_on_headers

from provisioner.web.forms import AskingForm
from provisioner.web.http import WebRequest, posted
from provisioner.web.posting import acted, form_page, require_safe_or_POST
from provisioner.workspaces.actions import retiring
from provisioner.workspaces.ending_pages import (
    purge_steps,
    retire_steps,
    why_not_purged,
    why_not_retired,
)
from provisioner.workspaces.forms import WorkspaceRetireForm
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import trash_seconds_of
from provisioner.workspaces.unsubmitted import find_unsubmitted_work
from provisioner.workspaces.views.guards import for_changing


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
