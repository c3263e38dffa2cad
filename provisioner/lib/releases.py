"""Releases of programs, such as "2024.10", which are compared number by number.

As text "2024.10" would come before "2024.2". In queries `release__numbers` is what a
column is compared and ordered by.
"""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import CharField, IntegerField, TextField, Transform


def numbers_of(release: str) -> list[int]:
    """Return the numbers of a release, none of ""."""
    return [int(number) for number in release.split(".")] if release else []


def is_older(release: str, than: str) -> bool:
    """Return whether a release came before another; False if one is ""."""
    return bool(release and than) and numbers_of(release) < numbers_of(than)


@CharField.register_lookup
@TextField.register_lookup
class Numbers(Transform):
    """The numbers of a release, as an array."""

    lookup_name = "numbers"
    template = "string_to_array(%(expressions)s, '.')::int[]"
    output_field: ArrayField[Any, Any] = ArrayField(IntegerField())
