"""Kinds of values in bodies and queries, as lenient as ONTAP: numbers may be strings.

A kind is a function from what came in (JSON or text) to the value, raising ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Kind = Callable[[object], object]

_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([KMGTP]?)i?B?$", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_INTEGER_LIMIT = 1 << 63


def text(value: object) -> str:
    """Accept a string; a number is taken as it is written."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(value)
    result = str(value)
    if "\x00" in result:
        raise ValueError("NUL")
    result.encode()  # a lone surrogate is no text
    return result


def integer(value: object) -> int:
    """Accept a whole number, also as a string."""
    if isinstance(value, bool):
        raise ValueError(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,19}", value):
        value = int(value)
    if not isinstance(value, int) or abs(value) >= _INTEGER_LIMIT:
        raise ValueError(value)
    return value


def identity(value: object) -> int:
    """Accept a uid or gid."""
    number = integer(value)
    if not 0 <= number < (1 << 32) - 1:
        raise ValueError(value)
    return number


def octal_digits(value: object) -> int:
    """Accept permissions: a number whose decimal digits are the octal mode."""
    number = integer(value)
    if number < 0 or not re.fullmatch(r"[0-7]{1,4}", str(number)):
        raise ValueError(value)
    return number


def label(value: object) -> str:
    """Accept a SnapMirror label: 1 to 31 characters."""
    result = text(value)
    if not 1 <= len(result) <= 31:
        raise ValueError(value)
    return result


def size(value: object) -> int:
    """Accept bytes, or a number with KB, MB, GB, TB or PB (1024-based)."""
    if isinstance(value, str):
        match = _SIZE.match(value.strip())
        if not match:
            raise ValueError(value)
        number, unit = match.groups()
        return integer(int(float(number) * _UNITS[unit.upper()]))
    return integer(value)


def boolean(value: object) -> bool:
    """Accept true and false, also as strings in any case."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError(value)


def choice(*allowed: str) -> Kind:
    """Accept one of the words."""

    def kind(value: object) -> object:
        if value not in allowed:
            raise ValueError(value)
        return value

    return kind


def anything(value: object) -> object:
    """Accept any JSON value: a documented field that the lab only remembers."""
    return value


def list_of(element: Kind) -> Kind:
    """Accept a list of one kind; a bare value counts as a list of one."""

    def kind(value: object) -> object:
        items = value if isinstance(value, list) else [value]
        return [element(item) for item in items]

    return kind


def record(fields: Mapping[str, Kind]) -> Kind:
    """Accept an object of the named fields, inside a list."""

    def kind(value: object) -> object:
        if not isinstance(value, dict):
            raise ValueError(value)
        unknown = set(value) - set(fields)
        if unknown:
            raise ValueError(f"unknown field {min(unknown)}")
        return {name: fields[name](item) for name, item in value.items()}

    return kind
