"""Kinds of values in bodies and queries, as lenient as ONTAP: numbers may be strings.

A kind converts what came in (JSON or text) to a value, or raises ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Kind = Callable[[object], object]

_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([KMGTP]?)i?B?$", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_INTEGER_LIMIT = 1 << 63


def text(value: object) -> str:
    """Accept a string; a number becomes its text."""
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


@dataclass(frozen=True)
class Choice:
    """Accept one of the words, in any case."""

    allowed: tuple[str, ...]

    def __call__(self, value: object) -> object:
        """Return the word in its documented spelling."""
        if not isinstance(value, str):
            raise ValueError(value)
        for word in self.allowed:
            if word.casefold() == value.casefold():
                return word
        raise ValueError(value)


def choice(*allowed: str) -> Choice:
    """Accept one of the words."""
    return Choice(allowed)


def anything(value: object) -> object:
    """Accept any JSON value: a documented field that the lab only stores."""
    return value


@dataclass(frozen=True)
class ListOf:
    """Accept a list of one kind; a single value counts as a list of one."""

    element: Kind

    def __call__(self, value: object) -> object:
        """Return the list."""
        items = value if isinstance(value, list) else [value]
        return [self.element(item) for item in items]


def list_of(element: Kind) -> ListOf:
    """Accept a list of one kind; a single value counts as a list of one."""
    return ListOf(element)


@dataclass(frozen=True)
class Record:
    """Accept an object with the named fields, inside a list."""

    fields: Mapping[str, Kind]

    def __call__(self, value: object) -> object:
        """Return the object with its values."""
        if not isinstance(value, dict):
            raise ValueError(value)
        unknown = set(value) - set(self.fields)
        if unknown:
            raise ValueError(f"unknown field {min(unknown)}")
        return {name: self.fields[name](item) for name, item in value.items()}


def record(fields: Mapping[str, Kind]) -> Record:
    """Accept an object with the named fields, inside a list."""
    return Record(fields)
