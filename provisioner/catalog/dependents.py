"""Rows that depend on a template: some block its deletion, others go with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from provisioner.catalog.models import Template

NAMED = 20


@dataclass(frozen=True, kw_only=True)
class Dependent:
    """Rows of a feature that are about a template.

    They prevent its deletion, or with `goes` are deleted along with it.
    """

    one: str
    many: str
    rows: Callable[[Template], QuerySet[Any]]
    goes: bool = False

    def words(self, number: int) -> str:
        return f"{number:,} {self.one if number == 1 else self.many}"


@dataclass(frozen=True, kw_only=True)
class Found:
    """The number of rows, with the names of the first few."""

    what: str
    number: int
    names: list[str]
    words: str


_dependents: list[Dependent] = []


def register_dependent(dependent: Dependent) -> None:
    """Register a feature's rows to check before a template is deleted."""
    _dependents.append(dependent)


def needed_by(template: Template) -> list[Found]:
    """Return what prevents the deletion of a template."""
    return _found(template, goes=False)


def goes_with(template: Template) -> list[Found]:
    """Return what is deleted with a template."""
    return _found(template, goes=True)


def delete_dependents(template: Template) -> None:
    """Delete the rows that go with a template."""
    for dependent in _dependents:
        if dependent.goes:
            dependent.rows(template).delete()


def _found(template: Template, *, goes: bool) -> list[Found]:
    found = []
    for dependent in _dependents:
        if dependent.goes != goes:
            continue
        rows = dependent.rows(template)
        number = rows.count()
        if number:
            names = [str(row) for row in rows[:NAMED]]
            words = dependent.words(number)
            what = dependent.many
            found.append(Found(what=what, number=number, names=names, words=words))
    return found
