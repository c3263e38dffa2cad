"""Acting on many rows, one by one; and finding out beforehand what would come of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import transaction
from django.db.models import Model

from provisioner.lib.refusals import ActionRefused, InvalidRequest

MOST_AT_A_TIME = 200

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, kw_only=True)
class RowOutcome(Generic[Row]):
    """What came, or would come, of one of many: done as `sentence` says, or refused
    for that reason."""

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
    """Act on each row in a transaction of its own; a refusal stops no other.

    A rehearsal does the same and takes it back before anybody can see it: actions
    reach nothing outside the database before they are committed. So what it refuses
    is what would be refused, for the reason that would be given.

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
