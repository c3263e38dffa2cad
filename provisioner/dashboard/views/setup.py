"""The way from an empty installation to its first workspace."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import HttpResponseClientRedirect

from provisioner.dashboard.setup import guide_for
from provisioner.dashboard.setup_page import shown_milestones
from provisioner.web.http import WebRequest, digest


@require_safe
@vary_on_headers("HX-Request")
def welcome(request: WebRequest) -> HttpResponse:
    """Show what is still to do; once all is done there is nothing to show here."""
    guide = guide_for(request.user)
    if guide is None:
        home = redirect("workspace-list")
        return HttpResponseClientRedirect(home.url) if request.htmx else home
    context: dict[str, object] = {
        "guide": guide,
        "milestones": shown_milestones(guide, request.user),
    }
    if request.htmx:
        context["is_news"] = request.GET.get("said") != digest(guide.announcement)
        return render(request, "dashboard/setup/_guide.html", context)
    return render(request, "dashboard/setup/setup.html", context)
