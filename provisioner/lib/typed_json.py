"""Values as JSON and back, by their types.

For dataclasses, and what their fields are made of: text, numbers, bytes, paths, enums,
collections, and None.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Value = TypeVar("Value")


def to_json(value: Any) -> Any:
    """Return what `json.dumps` takes for a value, with bytes in base64."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {field.name: to_json(getattr(value, field.name)) for field in fields}
    if isinstance(value, Mapping):
        return {key: to_json(each) for key, each in value.items()}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Collection) and not isinstance(value, str):
        return [to_json(each) for each in value]
    return value


def from_json(kind: type[Value], value: Any) -> Value:
    """Return the value of this type that `to_json` was given.

    A tuple of a type is one; any other collection is a list, and any mapping a dict.

    Raises: TypeError, ValueError (it is of another type).
    """
    found: Value = _from_json(without_none(kind), value)
    return found


def _from_json(kind: Any, value: Any) -> Any:
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if kind is Any or value is None:
        return value
    if dataclasses.is_dataclass(kind):
        hints = _hints_of(origin)
        return origin(**{name: from_json(hints[name], value[name]) for name in value})
    if kind is bytes:
        return base64.b64decode(value)
    if not inner:
        return kind(value)
    if issubclass(origin, Mapping):
        return {key: from_json(inner[1], each) for key, each in value.items()}
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple(map(from_json, inner, value))
    every = [from_json(inner[0], each) for each in value]
    return tuple(every) if origin is tuple else every


def without_none(kind: Any) -> Any:
    """Return the type inside an optional one."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    [kind] = [one for one in get_args(kind) if one is not NoneType]
    return kind


@cache
def _hints_of(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
