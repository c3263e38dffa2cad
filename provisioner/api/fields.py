"""Strict JSON fields: no number as text, no text as number."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import Model
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from provisioner.lib.names import LONGEST_NAME, name_validator

Result = TypeVar("Result")


class Text(serializers.CharField):
    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Number(serializers.IntegerField):
    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class Flag(serializers.BooleanField):
    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Name(Text):
    """The name of a template or a workspace."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=LONGEST_NAME, trim_whitespace=False, **kwargs)
        self.validators.append(name_validator)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "integer", "minimum": 1},
            {"type": "string", "minLength": 1, "maxLength": 255},
        ]
    }
)
class IdOrName(serializers.Field[int | str, Any, int | str, Any]):
    """An id as a number, or a name as text."""

    def to_internal_value(self, data: Any) -> int | str:
        if isinstance(data, int) and not isinstance(data, bool) and data > 0:
            return data
        if isinstance(data, str):
            text = Text(max_length=255, trim_whitespace=False)
            return str(text.run_validation(data))
        raise serializers.ValidationError("Give an id (a number) or a name.")


def read_once(
    serializer: serializers.BaseSerializer[Any],
    name: str,
    read: Callable[[list[Any]], Result],
) -> Result:
    """Return what is read about all rows of an answer, in one go.

    All serializers of a list share their context, which keeps it.
    """
    if name not in serializer.context:
        shown: Any = serializer.root.instance
        listed = [shown] if isinstance(shown, Model) else list(shown)
        serializer.context[name] = read(listed)
    found: Result = serializer.context[name]
    return found


_fields_of: dict[type, dict[str, Any]] = {}


class WorkedOutOnce(serializers.Serializer[Any]):
    # For a serializer that each answer needs: its fields are copies. Django REST
    # framework works them out again for each object, from the model and by calling what
    # made them; that takes longer than all that they then do. (No docstring: it would
    # be taken for that of the serializer.)

    def get_fields(self) -> dict[str, Any]:
        if type(self) not in _fields_of:
            _fields_of[type(self)] = super().get_fields()
        return {name: _copied(field) for name, field in _fields_of[type(self)].items()}


def _copied(field: Any) -> Any:
    """Return an unbound copy of a field."""
    twin = copy.copy(field)
    if hasattr(twin, "child"):
        twin.child = _copied(twin.child)
        twin.child.parent = twin
    return twin
