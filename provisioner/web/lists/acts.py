"""Bulk actions of lists."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from django import forms
from django.db import transaction
from django.db.models import Model

from provisioner.accounts.models import User
from provisioner.lib.refusals import ActionRefused
from provisioner.web.bulk import RowOutcome, in_bulk

Row = TypeVar("Row", bound=Model)


class Act(Generic[Row]):
    """A bulk action on chosen rows, by an action on one row.

    `label` is the text of the button ("Retire"). `asks` begins the question about the
    rows if the label is too short ("Pause the refresh of"). `done` begins the
    confirmation ("Being retired"), and `undo` says how to undo it. `form` has the
    values that are the same for all rows; its fields are the arguments of `do`.
    `rehearsed` are the values for the first preview, before the form was filled in.
    """

    do_not_call_in_templates: ClassVar = True  # Django's name: the class is shown

    name: ClassVar[str]
    label: ClassVar[str]
    asks: ClassVar[str] = ""
    done: ClassVar[str]
    undo: ClassVar[str] = ""
    lead: ClassVar[str] = ""
    is_dangerous: ClassVar[bool] = False
    form: ClassVar[type[forms.Form]] = forms.Form
    rehearsed: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, *, by: User) -> None:
        self.by = by

    @classmethod
    def is_offered_to(cls, user: User) -> bool:
        return True

    def do(self, row: Row, **told: Any) -> Any:
        """Act on one row. Raises: ActionRefused."""
        raise NotImplementedError

    def says(self, row: Row, result: Any) -> str:
        """Return a sentence about what `do` does to a row, given its result."""
        raise NotImplementedError

    def leads_to(self, outcomes: Sequence[RowOutcome[Row]]) -> str:
        """Return the URL to go to afterwards; "" stays at the list."""
        return ""

    def on(self, rows: Sequence[Row], told: Mapping[str, Any]) -> list[RowOutcome[Row]]:
        """Act on each row in its own transaction.

        Raises: InvalidRequest.
        """
        return in_bulk(rows, lambda row: self._do(row, told))

    def preview(
        self, rows: Sequence[Row], told: Mapping[str, Any]
    ) -> list[RowOutcome[Row]]:
        """Return what `on` would do to each row, or its refusal.

        Raises: InvalidRequest.
        """
        return in_bulk(rows, self.forecast(rows, told))

    def forecast(
        self, rows: Sequence[Row], told: Mapping[str, Any]
    ) -> Callable[[Row], str]:
        """Return a function that previews the act on a row, or raises its refusal.

        It rehearses: actions reach nothing outside the database before they are
        committed, so what is done and rolled back shows exactly that. An act whose
        action can be asked for its decision about many rows at once does so instead.
        """
        return lambda row: self._do(row, told, is_rehearsal=True)

    def _do(
        self, row: Row, told: Mapping[str, Any], *, is_rehearsal: bool = False
    ) -> str:
        with transaction.atomic():
            # Actions may change, or delete, the object that they are given.
            sentence = self.says(row, self.do(copy.copy(row), **told))
            transaction.set_rollback(is_rehearsal)
        return sentence


def unless_refused(
    refused: Mapping[int, ActionRefused], says: Callable[[Row], str]
) -> Callable[[Row], str]:
    """Return a forecast that raises the refusals of rows, given by their keys."""

    def sentence(row: Row) -> str:
        if row.pk in refused:
            raise refused[row.pk]
        return says(row)

    return sentence
