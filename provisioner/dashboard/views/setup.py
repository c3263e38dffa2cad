"""The page of the setup, from an empty installation to the first workspace."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import HttpResponseClientRedirect

from provisioner.dashboard.setup import setup_for
from provisioner.dashboard.setup_page import setup_page_of
from provisioner.web.http import WebRequest, digest


@require_safe
@vary_on_headers("HX-Request")
def setup_page(request: WebRequest) -> HttpResponse:
    """Show what remains to be set up; afterwards redirect to the home page."""
    setup = setup_for(request.user)
    if setup is None:
        home = redirect("workspace-list")
        return HttpResponseClientRedirect(home.url) if request.htmx else home
    context: dict[str, object] = {
        "setup": setup,
        "page": setup_page_of(setup, request.user),
    }
    if request.htmx:
        context["has_changed"] = request.GET.get("said") != digest(setup.announcement)
        return render(request, "dashboard/setup/_steps.html", context)
    return render(request, "dashboard/setup/setup.html", context)
