"""The API of step logs: what a step printed, piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import Http404
from rest_framework import serializers

from provisioner.engine.logs import of_steps, reading
from provisioner.engine.models import Operation, Step
from provisioner.engine.overviews import OperationOverview

# A log of 100 MB has to come with the requests that a token may send in a minute.
PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class PrintedPiece:
    """Part of a step's log; without a step, nothing has printed anything so far."""

    operation_state: str
    current_step: str | None
    step: str | None = None
    title: str = ""
    attempt: int = 0
    state: str = Step.State.WAITING
    exit_code: int | None = None
    ending: str = ""
    text: str = ""
    offset: int = 0
    next_offset: int = 0
    size: int = 0
    is_last: bool = True
    is_running: bool = False


def printed_piece(
    overview: OperationOverview,
    *,
    step: str | None = None,
    offset: int | None = None,
    attempt: int | None = None,
) -> PrintedPiece:
    """Return the end of a step's log, or what follows an offset of an attempt's log.

    An unfinished line is returned only after the step has ended, so pieces are whole
    lines. A new attempt starts a new log at 0.

    Raises: Http404 where the operation has no such step.
    """
    to_read = of_steps.step_to_read(overview)
    current = to_read.name if to_read else None
    operation_state = overview.operation.state
    name = step or current
    if name is None:
        return PrintedPiece(operation_state=operation_state, current_step=None)
    log = of_steps.log_of(overview, step=name)
    if log is None:
        raise Http404
    # Asked before the log is read: what a step printed before it ended is there.
    is_running, path = log.is_running, log.step.log_path
    if offset is None:
        piece = reading.read_log(path)
    else:
        start = 0 if attempt not in (None, log.step.attempt) else offset
        piece = reading.read_from(path, offset=start, at_most=PIECE_BYTES)
    text, start, end, size = "", 0, 0, 0
    if piece is not None:
        text, start, end, size = piece.text, piece.start, piece.end, piece.size
        if piece.rest and not is_running:
            text, end = text + piece.rest, size
    return PrintedPiece(
        operation_state=operation_state,
        current_step=current,
        step=name,
        title=log.line.title,
        attempt=log.step.attempt,
        state=log.step.state,
        exit_code=log.step.exit_code,
        ending=log.line.ending,
        text=text,
        offset=start,
        next_offset=end,
        size=size,
        is_last=piece is None or piece.is_last,
        is_running=is_running,
    )


class LogSerializer(serializers.Serializer[PrintedPiece]):
    """A piece of a step's output, and the step's progress."""

    operation_state = serializers.ChoiceField(choices=Operation.State.choices)
    current_step = serializers.CharField(
        allow_null=True,
        help_text="The step whose log matters most: running, failed, or last. null: "
        "nothing was printed so far.",
    )
    step = serializers.CharField(
        allow_null=True, help_text="null: nothing was printed so far."
    )
    title = serializers.CharField()
    attempt = serializers.IntegerField(
        help_text="Each attempt begins a new log. Send it back with `offset`."
    )
    state = serializers.ChoiceField(choices=Step.State.choices)
    exit_code = serializers.IntegerField(
        allow_null=True, help_text="Of the command; negative: ended by that signal."
    )
    ending = serializers.CharField(
        help_text="How the step ended and after how long; empty before that."
    )
    text = serializers.CharField(
        help_text="UTF-8; bytes that are not are replaced. Whole lines while the step "
        "runs."
    )
    offset = serializers.IntegerField(help_text="The offset of the text in bytes.")
    next_offset = serializers.IntegerField(help_text="The offset of the next piece.")
    size = serializers.IntegerField(help_text="The current size of the log in bytes.")
    is_last = serializers.BooleanField(help_text="Nothing follows yet.")
    is_running = serializers.BooleanField(help_text="The step may print more.")


class LogQuery(serializers.Serializer[Any]):
    step = serializers.SlugField(required=False, help_text="The name of the step.")
    offset = serializers.IntegerField(
        required=False, min_value=0, max_value=2**53, help_text="`next_offset`."
    )
    attempt = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        help_text="The attempt whose log the offset is in.",
    )
