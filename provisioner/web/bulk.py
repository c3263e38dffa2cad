"""Act on many rows one by one, or preview the effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Model

from provisioner.lib.refusals import ActionRefused, InvalidRequest

MOST_AT_A_TIME = 300

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, kw_only=True)
class RowOutcome(Generic[Row]):
    """What happened, or would happen, to one row.

    With a `code` it was refused, and `sentence` says why.
    """

    row: Row
    sentence: str
    code: str = ""

    @property
    def is_refused(self) -> bool:
        return bool(self.code)


def in_bulk(rows: Iterable[Row], act: Callable[[Row], str]) -> list[RowOutcome[Row]]:
    """Return the outcome of `act` for each row. A refusal does not stop the others.

    Raises: InvalidRequest (none, or too many).
    """
    chosen = list(rows)
    if not chosen:
        raise InvalidRequest("Choose at least one.")
    if len(chosen) > MOST_AT_A_TIME:
        raise InvalidRequest(f"Choose up to {MOST_AT_A_TIME} at a time.")
    return [_one(row, act) for row in chosen]


def _one(row: Row, act: Callable[[Row], str]) -> RowOutcome[Row]:
    try:
        return RowOutcome(row=row, sentence=act(row))
    except ActionRefused as refusal:
        return RowOutcome(row=row, sentence=refusal.sentence, code=refusal.code)
