"""Columns that hold names of files, of whatever bytes those are.

They are the same columns to the database as Django's own, so no migration knows them.
"""

from __future__ import annotations

from typing import Any

from django.db import models

from provisioner.lib.storable import (
    as_named,
    as_named_json,
    shown_json,
    storable,
    storable_json,
)


class EvidenceField(models.JSONField):
    """JSON for people: names come back as they can be shown."""

    _written = staticmethod(shown_json)

    def get_db_prep_value(
        self, value: Any, connection: Any, prepared: bool = False
    ) -> Any:
        return super().get_db_prep_value(self._written(value), connection, prepared)

    def deconstruct(self) -> Any:
        return _as("django.db.models.JSONField", super().deconstruct())


class NamesField(EvidenceField):
    """JSON that is worked with: names come back as they were."""

    _written = staticmethod(storable_json)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        found = super().from_db_value(value, expression, connection)
        return as_named_json(found)


class NamesTextField(models.TextField):  # type: ignore[type-arg]  # as Django has it
    """Text that is worked with: names in it come back as they were."""

    def get_prep_value(self, value: Any) -> Any:
        value = super().get_prep_value(value)
        return storable(value) if isinstance(value, str) else value

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return value if value is None else as_named(value)

    def deconstruct(self) -> Any:
        return _as("django.db.models.TextField", super().deconstruct())


def _as(path: str, deconstructed: Any) -> Any:
    name, _, arguments, named = deconstructed
    return name, path, arguments, named
