"""Pages of operations and of the logs of their steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.engine.forms import LogForm
from provisioner.engine.logs import of_steps, reading, search
from provisioner.engine.logs.error_lines import find_error
from provisioner.engine.logs.of_steps import StepLog, find_operation
from provisioner.engine.queries import servers_used
from provisioner.engine.subjects import error_patterns_of
from provisioner.lib.places import place_for_download
from provisioner.web.http import HeldFile, WebRequest, digest

WRAP_COOKIE = "log_wrap"
A_YEAR_SECONDS = 365 * 86400


@require_safe
@vary_on_headers("HX-Request")
def operation_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show an operation with its steps; htmx gets the changing part."""
    overview = find_operation(request.user, pk=pk)
    if overview is None:
        raise Http404
    servers = servers_used(overview.operation)
    context: dict[str, object] = {"overview": overview, "servers": servers}
    if not request.htmx:
        return render(request, "engine/detail.html", context)
    context["has_changed"] = request.GET.get("said") != digest(overview.announcement)
    return render(request, "engine/_operation.html", context)


@require_safe
def operation_log(request: WebRequest, pk: int) -> HttpResponse:
    """Redirect to the log of the step that people want to read first."""
    overview = of_steps.find_operation(request.user, pk=pk)
    step = None if overview is None else of_steps.step_to_read(overview)
    if step is None:
        raise Http404
    return redirect("operation-step-log", pk, step.name)


@require_safe
@vary_on_headers("HX-Request")
def operation_step_log(request: WebRequest, pk: int, step: str) -> HttpResponse:
    """Show a step's log: its end, another piece, or search results.

    htmx gets the output since an offset, and finally how the step ended.
    """
    log = _log_or_404(request, pk=pk, step=step)
    form = LogForm(request.GET)
    form.is_valid()
    asked = form.cleaned_data
    path = log.step.log_path
    if request.htmx:
        return render(request, "engine/_log.html", _what_came(log, asked))
    if asked.get("wrap"):
        return _wrapped(request, asked["wrap"])
    page = {"log": log, "form": form, "is_wrapped": _wraps(request)}
    if asked.get("q"):
        start = asked.get("start") or 0
        found = search.search_log(path, text=asked["q"], start=start)
        return render(request, "engine/log_search.html", {**page, "found": found})
    shown = _shown(log, asked)
    piece = shown["piece"]
    page |= {
        "has_output": piece is not None or log.is_running,
        "is_ended": _is_ended(log, piece),
        "reloads": bool(shown.get("is_tail")) and log.is_running,
    }
    return render(request, "engine/log.html", {**page, **shown})


def _wraps(request: WebRequest) -> bool:
    return request.COOKIES.get(WRAP_COOKIE) != "off"


def _wrapped(request: WebRequest, wrap: str) -> HttpResponse:
    """Save whether long lines wrap, and show the requested page."""
    rest = request.GET.copy()
    rest.pop("wrap")
    answer = redirect(f"{request.path}?{rest.urlencode()}".rstrip("?"))
    answer.set_cookie(
        WRAP_COOKIE,
        wrap,
        max_age=A_YEAR_SECONDS,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )
    return answer


def _what_came(log: StepLog, asked: dict[str, Any]) -> dict[str, object]:
    """Return the part of a log that the page does not show yet."""
    path, offset = log.step.log_path, asked.get("offset") or 0
    # A new attempt begins a new log.
    is_other = asked.get("attempt") not in (None, log.step.attempt)
    piece = reading.read_on(path, offset=0 if is_other else offset)
    is_anew = piece is not None and piece.start < offset
    if piece is not None:
        goes_on = piece.start == offset and not is_other
        number = (asked.get("number") or None) if goes_on else None
        piece = reading.numbered(path, piece, number=number)
    return {
        "log": log,
        "piece": piece,
        "is_anew": is_anew,
        "is_followed": _is_followed(log, piece),
        "is_ended": _is_ended(log, piece),
    }


def _shown(log: StepLog, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the requested piece; `context` is the lines before it."""
    path = log.step.log_path
    offset, before, line = (asked.get(name) for name in ("offset", "before", "line"))
    if line is not None:
        return _shown_line(path, line)
    is_tail = False
    if before is not None:
        piece = reading.read_before(path, offset=before)
    elif offset is not None:
        piece = reading.read_from(path, offset=offset)
    else:
        is_tail, piece = True, reading.read_log(path)
    if piece is not None:
        piece = reading.numbered(path, piece)
    is_followed = is_tail and _is_followed(log, piece)
    return {"piece": piece, "is_tail": is_tail, "is_followed": is_followed}


def _shown_line(path: Path, line: int) -> dict[str, Any]:
    """Return the piece that begins with a line, and some lines before it."""
    offset = reading.offset_of_line(path, number=line)
    piece = None if offset is None else reading.read_from(path, offset=offset)
    if offset is None or piece is None:
        last = reading.read_log(path)
        return {
            "piece": None if last is None else reading.numbered(path, last),
            "missing_line": line,
        }
    context = reading.read_before(path, offset=offset, at_most=reading.CONTEXT_BYTES)
    return {
        "piece": reading.numbered(path, piece, number=line),
        "context": None if context is None else reading.numbered(path, context),
    }


def _is_followed(log: StepLog, piece: reading.LogPiece | None) -> bool:
    """Return whether the log exists, or may still grow."""
    return log.is_running or (piece is not None and piece.has_more)


def _is_ended(log: StepLog, piece: reading.LogPiece | None) -> bool:
    """Return whether the piece is the last of a log that no longer grows."""
    return not log.is_running and piece is not None and piece.is_last


@require_safe
def operation_step_log_error(request: WebRequest, pk: int, step: str) -> HttpResponse:
    """Redirect to the first line of a step's log that is an error."""
    log = _log_or_404(request, pk=pk, step=step)
    error = find_error(log.step.log_path, own=error_patterns_of(log.operation))
    address = reverse("operation-step-log", args=[pk, step])
    if error is None:
        said = "No error line so far." if log.is_running else "No error line."
        messages.info(request, f"{said} These are the last lines of the log.")
        return redirect(address)
    return redirect(f"{address}?line={error.number}#L{error.number}")


@require_safe
def operation_step_log_download(
    request: WebRequest, pk: int, step: str
) -> HttpResponseBase:
    """Send a step's whole log as a text file.

    Raises: TooManyDownloads.
    """
    log = _log_or_404(request, pk=pk, step=step)
    with place_for_download(request.user.pk) as held:
        try:
            opened = log.step.log_path.open("rb")
        except FileNotFoundError:
            raise Http404 from None
        return HeldFile(
            opened,  # closed with the answer
            held=held.pop_all(),
            as_attachment=True,
            filename=log.file_name,
            content_type="text/plain; charset=utf-8",
        )


def _log_or_404(request: WebRequest, *, pk: int, step: str) -> StepLog:
    log = of_steps.find_step_log(request.user, operation_pk=pk, step=step)
    if log is None:
        raise Http404
    return log
