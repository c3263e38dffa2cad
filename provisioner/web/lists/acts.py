"""What can be done to many rows of a list at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from django import forms
from django.db.models import Model

from provisioner.accounts.models import User
from provisioner.web.bulk import RowOutcome, in_bulk

Row = TypeVar("Row", bound=Model)


class Act(Generic[Row]):
    """One thing to do to chosen rows, by the action that does it to one.

    `label` is what a button says ("Retire"), `asks` how a question about the rows
    begins where that says more ("Pause the refresh of"), `done` how those are called
    that it was done to ("Being retired"), `undo` how it can be undone. `form` asks for
    what is the same for all rows; its fields are the arguments of `do`. `rehearsed`
    stands for what it has not been told when the preview is first shown.
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
        """Do it to one row. Raises: ActionRefused."""
        raise NotImplementedError

    def says(self, row: Row, result: Any) -> str:
        """Say what `do` does to a row, by what it returned."""
        raise NotImplementedError

    def leads_to(self, outcomes: Sequence[RowOutcome[Row]]) -> str:
        """Return the address where it is followed; "": the list as it was."""
        return ""

    def on(
        self, rows: Sequence[Row], told: Mapping[str, Any], *, is_rehearsal: bool
    ) -> list[RowOutcome[Row]]:
        """Do it to each row, or find out what would come of it.

        Raises: InvalidRequest.
        """
        return in_bulk(
            rows,
            lambda row: self.do(row, **told),
            says=self.says,
            is_rehearsal=is_rehearsal,
        )
