"""Pages that retire, restore, purge and retry workspaces."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)
from django.views.decorators.vary import vary_on_headers

from provisioner.lib.refusals import ActionRefused
from provisioner.web.forms import AskingForm
from provisioner.web.http import WebRequest, posted
from provisioner.web.lists.answers import list_answer
from provisioner.workspaces.actions import retiring
from provisioner.workspaces.ending_pages import (
    purge_steps,
    retire_steps,
    why_not_purged,
    why_not_retired,
)
from provisioner.workspaces.forms import WorkspaceRetireForm
from provisioner.workspaces.lists import RETIRED_WORKSPACES, TRASH
from provisioner.workspaces.queries import trash_seconds_of, workspaces_visible_to
from provisioner.workspaces.unsubmitted import find_unsubmitted_work
from provisioner.workspaces.views.guards import for_changing


@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request")
@for_changing
def workspace_retire(request: WebRequest, pk: int) -> HttpResponse:
    """Confirm a retirement, with a choice if there is unsubmitted work.

    htmx gets only what was found and the choices.
    """
    work = find_unsubmitted_work(request.user, pk=pk)
    if work is None:
        raise Http404
    workspace = work.workspace
    form = WorkspaceRetireForm(
        posted(request),
        has_unsubmitted=bool(work.found),
        can_be_rescued=work.can_be_rescued,
    )
    retirement = form.tried(
        lambda: retiring.workspace_retire(
            by=request.user, workspace=workspace, unsubmitted=form.choice()
        )
    )
    if retirement is not None:
        return redirect("workspace-detail", workspace.pk)
    is_part = request.htmx and not form.is_bound
    return render(
        request,
        "workspaces/_retire.html" if is_part else "workspaces/retire.html",
        {
            "form": form,
            "unsubmitted": work,
            "workspace": workspace,
            "announcement": work.announcement if is_part else "",
            "why_not": why_not_retired(workspace),
            "steps": retire_steps(
                work,
                has_choice="unsubmitted" in form.fields,
                trash_seconds=trash_seconds_of(workspace),
            ),
        },
        status=form.http_code,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@for_changing
def workspace_purge(request: WebRequest, pk: int) -> HttpResponse:
    """Confirm a purge."""
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    form = AskingForm(posted(request))
    purge = form.tried(
        lambda: retiring.workspace_purge(by=request.user, workspace=workspace)
    )
    if purge is not None:
        return redirect("workspace-detail", workspace.pk)
    return render(
        request,
        "workspaces/purge.html",
        {
            "form": form,
            "workspace": workspace,
            "why_not": why_not_purged(workspace),
            "steps": purge_steps(workspace),
        },
        status=form.http_code,
    )


@require_http_methods(["GET", "HEAD", "POST"])
def workspace_trash(request: WebRequest) -> HttpResponseBase:
    """Show one's own workspaces in the trash; restore or purge several."""
    return list_answer(request, TRASH, "workspaces/trash.html")


@require_safe
def workspace_retired_list(request: WebRequest) -> HttpResponseBase:
    """Show one's own retired workspaces."""
    return list_answer(request, RETIRED_WORKSPACES, "workspaces/retired.html")


@require_POST
@for_changing
def workspace_restore(request: WebRequest, pk: int) -> HttpResponse:
    """Restore a workspace from the trash, or out of its retirement."""
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    try:
        retiring.workspace_restore(by=request.user, workspace=workspace)
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
    return redirect("workspace-detail", workspace.pk)


@require_POST
@for_changing
def workspace_retry(request: WebRequest, pk: int) -> HttpResponse:
    """Retry the failed operation of a workspace."""
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    try:
        retiring.workspace_retry(by=request.user, workspace=workspace)
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
    return redirect("workspace-detail", workspace.pk)
