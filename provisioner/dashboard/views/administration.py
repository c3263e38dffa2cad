"""For those who run the place."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from provisioner.dashboard.lists.workspaces import ALL_WORKSPACES
from provisioner.dashboard.queries import installation
from provisioner.limits.queries import limits_overview
from provisioner.web.http import WebRequest, administrators_only
from provisioner.web.lists.answers import list_answer


@require_safe
@administrators_only
def overview(request: WebRequest) -> HttpResponse:
    """Show how everything is: space, workspaces, failures, and who waits for what."""
    return render(
        request,
        "dashboard/overview.html",
        {"installation": installation(request.user)},
    )


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def admin_workspace_list(request: WebRequest) -> HttpResponseBase:
    """Show everybody's workspaces; extend, keep or retire many."""
    return list_answer(request, ALL_WORKSPACES, "dashboard/workspaces.html")


@require_safe
@administrators_only
def limit_list(request: WebRequest) -> HttpResponse:
    """Show every limit and how near it is."""
    overview = limits_overview(request.user)
    return render(request, "limits/list.html", {"overview": overview})
