"""Workspaces: mine, getting one, one of them, taking it back."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_safe,
)
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import retarget

from provisioner.dashboard import overviews
from provisioner.dashboard.ending_pages import (
    purge_steps,
    retire_steps,
    why_not_retired,
)
from provisioner.dashboard.lists import workspaces
from provisioner.dashboard.offers import offers_to
from provisioner.dashboard.setup_page import shown_milestones
from provisioner.dashboard.workspace_page import WorkspacePage
from provisioner.leases.queries import policy_for
from provisioner.lib.refusals import ActionRefused
from provisioner.limits.admission import quota_limits
from provisioner.web.forms import AskingForm
from provisioner.web.http import WebRequest, digest, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.lists.listing import Look
from provisioner.workspaces.actions import retiring
from provisioner.workspaces.forms import WorkspaceRetireForm
from provisioner.workspaces.sharing import company_of
from provisioner.workspaces.views.guards import for_changing

LONGEST_TEXT = 100


@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request", "HX-Target")
def workspace_list(request: WebRequest) -> HttpResponseBase:
    """Show my workspaces, and templates to get one from; extend or retire many."""
    text = request.GET.get("template", "")[:LONGEST_TEXT]
    if request.htmx and request.htmx.target == "offers":
        offers = offers_to(request.user, text=text, quotas=quota_limits(request.user))
        return render(request, "dashboard/_offers.html", {"offers": offers})
    if request.htmx and request.htmx.target != "list":
        look = Look(workspaces.OWN_WORKSPACES, request)
        return render(request, "workspaces/_list.html", {"listing": look})
    home = overviews.home_of(request.user, text=text)
    context: dict[str, object] = {"home": home, "offers": home.offers}
    if home.setup is not None:
        context["milestones"] = shown_milestones(home.setup, request.user)
    return list_answer(
        request, workspaces.OWN_WORKSPACES, "workspaces/list.html", context
    )


@require_safe
def workspace_team_list(request: WebRequest) -> HttpResponseBase:
    """Show what my team mates have; changing it is for them."""
    return list_answer(request, workspaces.TEAM_WORKSPACES, "workspaces/team.html")


@require_http_methods(["GET", "HEAD", "POST"])
def workspace_trash(request: WebRequest) -> HttpResponseBase:
    """Show what I could bring back, and until when; bring back or destroy many."""
    return list_answer(request, workspaces.TRASH, "workspaces/trash.html")


@require_safe
def workspace_retired_list(request: WebRequest) -> HttpResponseBase:
    """Show the workspaces I had."""
    return list_answer(
        request, workspaces.RETIRED_WORKSPACES, "workspaces/retired.html"
    )


@require_safe
@vary_on_headers("HX-Request")
def workspace_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show a workspace; to htmx its progress, and all of it once it has settled."""
    overview = overviews.find_workspace_overview(request.user, pk=pk)
    if overview is None:
        raise Http404
    context: dict[str, object] = {
        "overview": overview,
        "workspace": overview.workspace,
        "is_update": bool(request.htmx),
    }
    if request.htmx and overview.workspace.is_moving:
        context["has_changed"] = request.GET.get("said") != digest(
            overview.announcement
        )
        return render(request, "workspaces/_progress.html", context)
    company = company_of(request.user, overview.workspace)
    context["company"] = company
    context["page"] = WorkspacePage(
        overview=overview, company=company, user=request.user
    )
    if not request.htmx:
        return render(request, "workspaces/detail.html", context)
    settled = render(request, "workspaces/_workspace.html", context)
    return retarget(settled, "#workspace")


@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request")
@for_changing
def workspace_retire(request: WebRequest, pk: int) -> HttpResponse:
    """Ask before a workspace is taken back; unsaved work needs a choice.

    To htmx: what was found, and the choices.
    """
    overview = overviews.find_workspace_overview(request.user, pk=pk)
    if overview is None:
        raise Http404
    workspace = overview.workspace
    form = WorkspaceRetireForm(
        posted(request),
        has_unsaved=bool(overview.unsaved),
        can_be_rescued=overview.can_be_rescued,
    )
    if form.is_valid():
        try:
            retiring.workspace_retire(
                by=request.user, workspace=workspace, unsaved=form.choice()
            )
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            return redirect("workspace-detail", workspace.pk)
    is_part = request.htmx and not form.is_bound
    policy = policy_for(workspace.template, workspace.purpose)
    return render(
        request,
        "workspaces/_retire.html" if is_part else "workspaces/retire.html",
        {
            "form": form,
            "overview": overview,
            "workspace": workspace,
            "is_update": is_part,
            "why_not": why_not_retired(workspace),
            "steps": retire_steps(
                overview,
                has_choice="unsaved" in form.fields,
                trash_seconds=policy.trash_seconds,
            ),
        },
        status=form.http_code,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@for_changing
def workspace_purge(request: WebRequest, pk: int) -> HttpResponse:
    """Ask before what is in the trash is destroyed for good."""
    overview = overviews.find_workspace_overview(request.user, pk=pk)
    if overview is None:
        raise Http404
    workspace = overview.workspace
    form = AskingForm(posted(request))
    if form.is_valid():
        try:
            retiring.workspace_purge(by=request.user, workspace=workspace)
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            return redirect("workspace-detail", workspace.pk)
    return render(
        request,
        "workspaces/purge.html",
        {"form": form, "workspace": workspace, "steps": purge_steps(overview)},
        status=form.http_code,
    )
