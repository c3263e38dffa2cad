"""Pages of operations: one with its steps, and the list."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.engine.logs.of_steps import find_operation
from provisioner.web.http import WebRequest, digest


@require_safe
@vary_on_headers("HX-Request")
def operation_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show an operation with its steps; htmx gets the changing part."""
    overview = find_operation(request.user, pk=pk)
    if overview is None:
        raise Http404
    context: dict[str, object] = {"overview": overview}
    if not request.htmx:
        return render(request, "engine/detail.html", context)
    context["has_changed"] = request.GET.get("said") != digest(overview.announcement)
    return render(request, "engine/_operation.html", context)
