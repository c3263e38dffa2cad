"""What a step printed, piece by piece, for scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rest_framework import serializers

from provisioner.engine.logs import reading
from provisioner.engine.logs.of_steps import StepLog
from provisioner.engine.models import Operation, Step

# A log of 100 MB has to come with the requests that a token may send in a minute.
PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class PrintedPiece:
    """Part of a step's log; without a step, nothing has printed anything so far."""

    operation: Operation
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

    @property
    def operation_state(self) -> str:
        return self.operation.state


def printed_piece(
    log: StepLog, *, offset: int | None, attempt: int | None
) -> PrintedPiece:
    """Return the end of a log, or what follows an offset of an attempt's log.

    A line that has not ended yet comes once the step has: whoever puts pieces together
    has whole lines. A new attempt begins a new log, from 0.
    """
    # Asked before the log is read: what a step printed before it ended is there.
    is_running, step = log.is_running, log.step
    if offset is None:
        piece = reading.read_log(step.log_path)
    else:
        start = 0 if attempt not in (None, step.attempt) else offset
        piece = reading.read_from(step.log_path, offset=start, at_most=PIECE_BYTES)
    text, start, end, size = "", 0, 0, 0
    if piece is not None:
        text, start, end, size = piece.text, piece.start, piece.end, piece.size
        if piece.rest and not is_running:
            text, end = text + piece.rest, size
    return PrintedPiece(
        operation=log.operation,
        step=step.name,
        title=log.line.title,
        attempt=step.attempt,
        state=step.state,
        exit_code=step.exit_code,
        ending=log.line.ending,
        text=text,
        offset=start,
        next_offset=end,
        size=size,
        is_last=piece is None or piece.is_last,
        is_running=is_running,
    )


class LogSerializer(serializers.Serializer[PrintedPiece]):
    """Part of what a step printed, and how far the step is."""

    operation_state = serializers.ChoiceField(choices=Operation.State.choices)
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
    offset = serializers.IntegerField(help_text="Where the text begins, in bytes.")
    next_offset = serializers.IntegerField(help_text="Where to go on.")
    size = serializers.IntegerField(help_text="Bytes of the log by now.")
    is_last = serializers.BooleanField(help_text="Nothing comes after it so far.")
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
        help_text="The attempt that the offset counts in.",
    )
