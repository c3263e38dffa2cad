"""The home page, lists of workspaces, and the page of one."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import retarget

from provisioner.dashboard import lists, overviews
from provisioner.dashboard.offers import offers_to
from provisioner.dashboard.setup_page import setup_page_of
from provisioner.dashboard.workspace_page import WorkspacePage
from provisioner.limits.admission import quota_limits
from provisioner.web.http import WebRequest, digest
from provisioner.web.lists.answers import list_answer
from provisioner.web.lists.listing import Look
from provisioner.web.posting import require_safe_or_POST
from provisioner.workspaces.sharing import company_of

LONGEST_TEXT = 100


@require_safe_or_POST
@vary_on_headers("HX-Request", "HX-Target")
def workspace_list(request: WebRequest) -> HttpResponseBase:
    """Show my workspaces, and templates to get one from; extend or retire several."""
    text = request.GET.get("template", "")[:LONGEST_TEXT]
    if request.htmx and request.htmx.target == "offers":
        offers = offers_to(request.user, text=text, quotas=quota_limits(request.user))
        return render(request, "dashboard/_offers.html", {"offers": offers})
    if request.htmx and request.htmx.target != "list":
        look = Look(lists.OWN_WORKSPACES, request)
        return render(request, "workspaces/_list.html", {"listing": look})
    home = overviews.home_of(request.user, text=text)
    context: dict[str, object] = {"home": home, "offers": home.offers}
    if home.setup is not None:
        context["page"] = setup_page_of(home.setup, request.user)
    return list_answer(request, lists.OWN_WORKSPACES, "workspaces/list.html", context)


@require_safe
@vary_on_headers("HX-Request")
def workspace_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show a workspace; htmx gets its progress, and all of it once settled."""
    overview = overviews.find_workspace_overview(request.user, pk=pk)
    if overview is None:
        raise Http404
    context: dict[str, object] = {
        "overview": overview,
        "workspace": overview.workspace,
        "unsubmitted": overview.unsubmitted,
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
