"""Model fields for file names of any bytes.

To the database they are Django's own fields, so migrations do not name them.
"""

from __future__ import annotations

from typing import Any

from django.db import models

from provisioner.lib.storable import (
    as_named_json,
    shown_json,
    storable_json,
)


class EvidenceField(models.JSONField):
    """JSON for people: names are read back in their displayable form."""

    _written = staticmethod(shown_json)

    def get_db_prep_value(
        self, value: Any, connection: Any, prepared: bool = False
    ) -> Any:
        return super().get_db_prep_value(self._written(value), connection, prepared)

    def deconstruct(self) -> Any:
        name, _, arguments, named = super().deconstruct()
        return name, "django.db.models.JSONField", arguments, named


class NameField(models.TextField[str, str]):
    """A name, or text with names, for code: it is read back unchanged."""

    def get_prep_value(self, value: Any) -> Any:
        return super().get_prep_value(storable_json(value))

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return as_named_json(value)

    def deconstruct(self) -> Any:
        name, _, arguments, named = super().deconstruct()
        return name, "django.db.models.TextField", arguments, named


class NamesField(EvidenceField):
    """JSON for code: names are read back unchanged."""

    _written = staticmethod(storable_json)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        found = super().from_db_value(value, expression, connection)
        return as_named_json(found)
