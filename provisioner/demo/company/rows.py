"""Rows that are made in bulk: gathered, numbered by age, written with COPY.

Nothing that a save would do happens here; what it would have done is made as a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, TypeVar

from django.db import connection, transaction
from django.db.models import Field, JSONField, Model

AnyRow = TypeVar("AnyRow", bound=Model)


class Rows:
    """Rows that wait to be written, all of them in one transaction."""

    def __init__(self) -> None:
        self._waiting: defaultdict[type[Model], list[Model]] = defaultdict(list)
        self._numbers: dict[type[Model], int] = {}

    def add(self, row: AnyRow) -> AnyRow:
        """Add a row with a key of its own, to be written later."""
        if row.pk is None:
            row.pk = self._next_number(type(row))
        self._waiting[type(row)].append(row)
        return row

    def add_later(self, row: AnyRow) -> AnyRow:
        """Add a row that gets its key when `number` is called."""
        self._waiting[type(row)].append(row)
        return row

    def of(self, model: type[AnyRow]) -> list[AnyRow]:
        """Return the rows of a model that wait."""
        return self._waiting[model]  # type: ignore[return-value]  # by their model

    def number(self, model: type[Model], *, by: str) -> None:
        """Number the rows that have none in the order of a field, such as their age."""
        new = [row for row in self._waiting[model] if row.pk is None]
        for row in sorted(new, key=attrgetter(by)):
            row.pk = self._next_number(model)

    def write(self) -> None:
        """Write everything that waits; references may lead to and fro among it."""
        with transaction.atomic():
            for model, rows in self._waiting.items():
                if rows:
                    _copy(model, rows)
                    _go_on_after(model)
        self._waiting.clear()
        self._numbers.clear()  # others write before the next time, such as a sign-in

    def _next_number(self, model: type[Model]) -> int:
        if model not in self._numbers:
            newest = model._default_manager.order_by("-pk").first()
            self._numbers[model] = newest.pk if newest else 0
        self._numbers[model] += 1
        return self._numbers[model]


def _copy(model: type[Model], rows: Iterable[Model]) -> None:
    fields = [field for field in model._meta.concrete_fields if not field.generated]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    readers = [_reader_of(field) for field in fields]
    with (
        connection.cursor() as cursor,
        cursor.copy(f'COPY "{model._meta.db_table}" ({columns}) FROM STDIN') as copy,
    ):
        for row in rows:
            copy.write_row([read(row) for read in readers])


def _reader_of(field: Field[Any, Any]) -> Callable[[Any], Any]:
    """Return what reads a column: a row referred to may have got its number since."""
    if field.is_relation:
        name, attname = field.name, field.attname

        def read_number(row: Any) -> Any:
            related = row._state.fields_cache.get(name)
            return getattr(row, attname) if related is None else related.pk

        return read_number
    if isinstance(field, JSONField):

        def read_json(row: Any) -> Any:
            return field.get_db_prep_save(getattr(row, field.attname), connection)

        return read_json
    return attrgetter(field.attname)


def _go_on_after(model: type[Model]) -> None:
    """Advance the model's sequence past the rows that were written."""
    key = model._meta.pk
    assert key is not None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_serial_sequence(%s, %s)", [model._meta.db_table, key.column]
        )
        [sequence] = cursor.fetchone()
        if sequence is not None:
            cursor.execute(
                f"SELECT setval(%s, (SELECT max({key.column}) "  # noqa: S608
                f'FROM "{model._meta.db_table}"))',
                [sequence],
            )
