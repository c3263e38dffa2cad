"""Act on many rows one by one, or rehearse it to see what would happen."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import transaction
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


def in_bulk(
    rows: Iterable[Row],
    act: Callable[[Row], Any],
    *,
    says: Callable[[Row, Any], str],
    is_rehearsal: bool,
) -> list[RowOutcome[Row]]:
    """Act on each row in a transaction of its own. A refusal does not stop the others.

    A rehearsal rolls each transaction back. Actions reach nothing outside the database
    before they are committed, so it shows exactly what would happen or be refused.

    Raises: InvalidRequest (none, or too many).
    """
    chosen = list(rows)
    if not chosen:
        raise InvalidRequest("Choose at least one.")
    if len(chosen) > MOST_AT_A_TIME:
        raise InvalidRequest(f"Choose up to {MOST_AT_A_TIME} at a time.")
    return [_one(row, act, says, is_rehearsal=is_rehearsal) for row in chosen]


def _one(
    row: Row,
    act: Callable[[Row], Any],
    says: Callable[[Row, Any], str],
    *,
    is_rehearsal: bool,
) -> RowOutcome[Row]:
    try:
        with transaction.atomic():
            # Actions may change, or delete, the object that they are given.
            sentence = says(row, act(copy.copy(row)))
            transaction.set_rollback(is_rehearsal)
    except ActionRefused as refusal:
        return RowOutcome(row=row, sentence=refusal.sentence, code=refusal.code)
    return RowOutcome(row=row, sentence=sentence)
