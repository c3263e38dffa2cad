"""For those who run the place."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from provisioner.web.filter_forms import WorkspaceFilterForm
from provisioner.web.http import WebRequest, administrators_only
from provisioner.workspaces import overviews
from provisioner.workspaces.installation import installation
from provisioner.workspaces.limits_overview import limits_overview

WORKSPACES_ON_A_PAGE = 50


@require_safe
@administrators_only
def overview(request: WebRequest) -> HttpResponse:
    """Show how everything is: space, workspaces, failures, and who waits for what."""
    return render(
        request,
        "administration/overview.html",
        {"installation": installation(request.user)},
    )


@require_safe
@administrators_only
def admin_workspace_list(request: WebRequest) -> HttpResponse:
    """Show everybody's workspaces, filtered and paged by the address."""
    form = WorkspaceFilterForm(request.GET)
    workspaces = overviews.workspaces_matching(request.user, **form.criteria())
    page = Paginator(workspaces, WORKSPACES_ON_A_PAGE).get_page(request.GET.get("page"))
    return render(
        request, "administration/workspaces.html", {"form": form, "page": page}
    )


@require_safe
@administrators_only
def limit_list(request: WebRequest) -> HttpResponse:
    """Show every limit and how near it is."""
    overview = limits_overview(request.user)
    return render(request, "administration/limits.html", {"overview": overview})
