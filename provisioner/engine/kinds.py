"""Kinds of operations, as named by features."""

from __future__ import annotations

from django.db.models import TextChoices

_titles: dict[str, str] = {}


def register(kind: TextChoices) -> None:
    """Register a kind of operation with its title."""
    _titles[kind.value] = str(kind.label)


def title_of(kind: str) -> str:
    """Return the title of a kind; kinds of older releases are shown by name."""
    return _titles.get(kind, kind)


def choices() -> list[tuple[str, str]]:
    """Return every kind with its title, for forms and the API."""
    return list(_titles.items())
