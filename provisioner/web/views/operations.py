"""The output of builds."""

from __future__ import annotations

from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.web.forms import OffsetForm
from provisioner.web.http import WebRequest
from provisioner.workspaces import overviews


@require_safe
@vary_on_headers("HX-Request")
def operation_log(request: WebRequest, pk: int) -> HttpResponse:
    """Show a build's log: its last lines, or those from an offset on."""
    offset = OffsetForm(request.GET).value()
    log = overviews.find_build_log(request.user, operation_pk=pk, offset=offset)
    if log is None:
        raise Http404
    page = "operations/_log.html" if request.htmx else "operations/log.html"
    is_tail = offset is None
    is_followed = log.is_followed and (is_tail or bool(request.htmx))
    context = {"log": log, "is_tail": is_tail, "is_followed": is_followed}
    return render(request, page, context)


@require_safe
def operation_log_download(request: WebRequest, pk: int) -> HttpResponseBase:
    """Send a build's whole log as a text file."""
    log = overviews.find_build_log(request.user, operation_pk=pk)
    if log is None or log.piece is None:
        raise Http404
    return FileResponse(
        log.step.log_path.open("rb"),
        as_attachment=True,
        filename=f"{log.operation.template}-build-{pk}.log.txt",
        content_type="text/plain; charset=utf-8",
    )
