"""Kinds of operations, as named by features."""

from __future__ import annotations

from django.db.models import TextChoices

_titles: dict[str, str] = {}


def register(kind: TextChoices) -> None:
    """Let operations be of this kind; its label is what people read."""
    _titles[kind.value] = str(kind.label)


def title_of(kind: str) -> str:
    """Return what people read for a kind; one of an older release has its name."""
    return _titles.get(kind, kind)


def choices() -> list[tuple[str, str]]:
    """Return every kind with its title, as forms and the API take them."""
    return list(_titles.items())
