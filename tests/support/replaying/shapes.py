"""Fields of answers and their kinds, whatever their values are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provisioner.gateways.tracing.pseudonyms import TIME, UUID

Shape = Mapping[str, frozenset[str]]
"""Kinds of values by the path of their field, such as `records[].svm.name`."""

_INDEX = re.compile(r"\d+(?:,\d+)*\Z")


def shape_of_json(value: Any) -> Shape:
    """Return the shape of a JSON value; items of a list count as one."""
    return _together(_fields(value, path=""))


def shape_of_records(records: Sequence[Mapping[str, Any]]) -> Shape:
    """Return the shape of Perforce's records; `View0` and `View1` count as one.

    Their values are all texts: only numbers are told from the rest.
    """
    return _together(
        (_INDEX.sub("", name), kind)
        for record in records
        for name, value in record.items()
        for kind in _kinds_of_text(value)
    )


def differences(there: Shape, here: Shape) -> Iterator[str]:
    """Say in which fields two shapes differ; `there` is that of the trace."""
    for path in sorted(there.keys() | here.keys()):
        was, is_now = there.get(path), here.get(path)
        if is_now is None:
            yield f"the field {path} is missing"
        elif was is None:
            yield f"the field {path} was not in the trace"
        elif was.isdisjoint(is_now):
            yield f"{path} is {_said(is_now)}, and was {_said(was)}"


def _said(kinds: frozenset[str]) -> str:
    return " or ".join(sorted(kinds))


def _together(fields: Iterator[tuple[str, str]]) -> Shape:
    shape: dict[str, frozenset[str]] = {}
    for path, kind in fields:
        shape[path] = shape.get(path, frozenset()) | {kind}
    return shape


def _fields(value: Any, *, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _fields(item, path=f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        yield path, "a list"
        for item in value:
            yield from _fields(item, path=f"{path}[]")
    else:
        yield path, _kind(value)


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if UUID.fullmatch(str(value)):
        return "a uuid"
    return "a time" if TIME.fullmatch(str(value)) else "a text"


def _kinds_of_text(value: Any) -> Iterator[str]:
    for text in value if isinstance(value, list) else [value]:
        yield "a number" if str(text).isdecimal() else "a text"
