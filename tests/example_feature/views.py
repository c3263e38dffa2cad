"""The page of an errand."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from provisioner.web.http import WebRequest
from tests.example_feature.queries import errands_visible_to


@require_safe
def errand_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show an errand, and what was done about it."""
    errand = get_object_or_404(errands_visible_to(request.user), pk=pk)
    context = {"errand": errand, "operations": errand.operations.all()}
    return render(request, "example_feature/detail.html", context)
