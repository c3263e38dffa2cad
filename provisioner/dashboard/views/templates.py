"""Templates: what there is to clone."""

from __future__ import annotations

from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods

from provisioner.catalog import refresh_overview
from provisioner.dashboard.lists.templates import REFRESHES, TEMPLATES
from provisioner.web.http import WebRequest, administrators_only
from provisioner.web.lists.answers import list_answer


@require_http_methods(["GET", "HEAD", "POST"])
def template_list(request: WebRequest) -> HttpResponseBase:
    """Show all templates and what each would give now; administrators build many."""
    return list_answer(request, TEMPLATES, "catalog/list.html")


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def refresh_list(request: WebRequest) -> HttpResponseBase:
    """Show what refreshes which template, and what stops that; pause many."""
    context = {"refreshes": refresh_overview.refreshes_now()}
    return list_answer(request, REFRESHES, "catalog/refreshes.html", context)
