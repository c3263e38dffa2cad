"""Templates: what there is to clone."""

from __future__ import annotations

from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods

from provisioner.dashboard.lists.templates import TEMPLATES
from provisioner.web.http import WebRequest
from provisioner.web.lists.answers import list_answer


@require_http_methods(["GET", "HEAD", "POST"])
def template_list(request: WebRequest) -> HttpResponseBase:
    """Show all templates and what each would give now; administrators build many."""
    return list_answer(request, TEMPLATES, "templates/list.html")
