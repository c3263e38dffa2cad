"""What steps printed: to follow, to page through, to search, to download."""

from __future__ import annotations

from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.engine.forms import LogForm
from provisioner.engine.logs import of_steps, reading, search
from provisioner.engine.logs.of_steps import StepLog
from provisioner.web.http import WebRequest


@require_safe
def operation_log(request: WebRequest, pk: int) -> HttpResponse:
    """Go to the log of the step that people want to read first."""
    overview = of_steps.find_operation(request.user, pk=pk)
    step = None if overview is None else of_steps.step_to_read(overview)
    if step is None:
        raise Http404
    return redirect("operation-step-log", pk, step.name)


@require_safe
@vary_on_headers("HX-Request")
def operation_step_log(request: WebRequest, pk: int, step: str) -> HttpResponse:
    """Show a step's log: its end, another piece, or the lines that have a text.

    To htmx what came since an offset, and then how the step ended.
    """
    log = _log_or_404(request, pk=pk, step=step)
    form = LogForm(request.GET)
    form.is_valid()
    asked = form.cleaned_data
    path = log.step.log_path
    if request.htmx:
        offset = asked.get("offset") or 0
        # A new attempt begins a new log.
        is_other = asked.get("attempt") not in (None, log.step.attempt)
        piece = reading.read_on(path, offset=0 if is_other else offset)
        is_anew = piece is not None and piece.start < offset
        context = {
            "log": log,
            "piece": piece,
            "is_anew": is_anew,
            "is_followed": _is_followed(log, piece),
        }
        return render(request, "engine/_log.html", context)
    page = {"log": log, "form": form}
    if asked.get("q"):
        start = asked.get("start") or 0
        found = search.search_log(path, text=asked["q"], start=start)
        return render(request, "engine/log_search.html", {**page, "found": found})
    return render(request, "engine/log.html", {**page, **_shown(log, asked)})


def _shown(log: StepLog, asked: dict[str, int | None]) -> dict[str, object]:
    """Return the piece that is asked for; `context` are the lines before it."""
    path = log.step.log_path
    offset, before, line = (asked.get(name) for name in ("offset", "before", "line"))
    if line is not None:
        context = reading.read_before(path, offset=line, at_most=reading.CONTEXT_BYTES)
        return {"piece": reading.read_from(path, offset=line), "context": context}
    if before is not None:
        return {"piece": reading.read_before(path, offset=before)}
    if offset is not None:
        return {"piece": reading.read_from(path, offset=offset)}
    piece = reading.read_log(path)
    is_followed = _is_followed(log, piece)
    return {"piece": piece, "is_tail": True, "is_followed": is_followed}


def _is_followed(log: StepLog, piece: reading.LogPiece | None) -> bool:
    """Say whether there is or will be more of it."""
    return log.is_running or (piece is not None and not piece.is_last)


@require_safe
def operation_step_log_download(
    request: WebRequest, pk: int, step: str
) -> HttpResponseBase:
    """Send a step's whole log as a text file."""
    log = _log_or_404(request, pk=pk, step=step)
    try:
        opened = log.step.log_path.open("rb")
    except FileNotFoundError:
        raise Http404 from None
    return FileResponse(
        opened,
        as_attachment=True,
        filename=log.file_name,
        content_type="text/plain; charset=utf-8",
    )


def _log_or_404(request: WebRequest, *, pk: int, step: str) -> StepLog:
    log = of_steps.find_step_log(request.user, operation_pk=pk, step=step)
    if log is None:
        raise Http404
    return log
