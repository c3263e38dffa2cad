"""Rows that are made in bulk: collected, numbered by age, written with COPY.

Nothing that a save would do happens here; its effects are made as rows.
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
    """Rows to be written, all in one transaction."""

    def __init__(self) -> None:
        self._waiting: defaultdict[type[Model], list[Model]] = defaultdict(list)
        self._numbers: dict[type[Model], int] = {}

    def add(self, row: AnyRow) -> AnyRow:
        """Add a row with its own key, to be written later."""
        if row.pk is None:
            row.pk = self._next_number(type(row))
        self._waiting[type(row)].append(row)
        return row

    def add_later(self, row: AnyRow) -> AnyRow:
        """Add a row that gets its key when `number` is called."""
        self._waiting[type(row)].append(row)
        return row

    def of(self, model: type[AnyRow]) -> list[AnyRow]:
        """Return the waiting rows of a model."""
        return self._waiting[model]  # type: ignore[return-value]  # by their model

    def number(self, model: type[Model], *, by: str) -> None:
        """Number the rows without a key in the order of a field, such as their age."""
        new = [row for row in self._waiting[model] if row.pk is None]
        for row in sorted(new, key=attrgetter(by)):
            row.pk = self._next_number(model)

    def write(self) -> None:
        """Write all waiting rows; they may refer to each other."""
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
    """Return a function that reads a column: a referenced row may be numbered late."""
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
    """Advance the model's sequence past the written rows."""
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
