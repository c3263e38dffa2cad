"""Operations: what was asked for, how far its steps are, and all there were."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.web.filter_forms import OperationFilterForm
from provisioner.web.http import WebRequest, csv_answer, digest
from provisioner.workspaces import operation_search
from provisioner.workspaces.step_logs import find_operation

OPERATIONS_ON_A_PAGE = 50


@require_safe
def operation_list(request: WebRequest) -> HttpResponse:
    """Show the operations that a person may see, filtered and paged by the address."""
    form = OperationFilterForm(request.GET)
    found = operation_search.operations_matching(request.user, **form.criteria())
    page = Paginator(found, OPERATIONS_ON_A_PAGE).get_page(request.GET.get("page"))
    return render(request, "operations/list.html", {"form": form, "page": page})


@require_safe
def operation_download(request: WebRequest) -> HttpResponseBase:
    """Send the same, all pages of it, as a table."""
    form = OperationFilterForm(request.GET)
    found = operation_search.operations_matching(request.user, **form.criteria())
    return csv_answer("operations", operation_search.as_csv(found))


@require_safe
@vary_on_headers("HX-Request")
def operation_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show an operation with its steps; to htmx the part that moves."""
    overview = find_operation(request.user, pk=pk)
    if overview is None:
        raise Http404
    context: dict[str, object] = {"overview": overview}
    if not request.htmx:
        return render(request, "operations/detail.html", context)
    context["is_news"] = request.GET.get("said") != digest(overview.announcement)
    return render(request, "operations/_operation.html", context)
