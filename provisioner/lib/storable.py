r"""Names of any bytes as text that can be stored and shown.

Python reads a name that is not UTF-8 as text with surrogates (os.fsdecode), which no
database, page or mail accepts. Each such byte is written as \xe9. If the name must be
recoverable, a backslash that would read the same is written as \x5c.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_AMBIGUOUS = re.compile(r"\\(?=x(?:5c|[89a-f][0-9a-f]))")
_BYTE = re.compile("[\udc80-\udcff]")
_NOT_TEXT = re.compile("[\ud800-\udfff\0]")
_WRITTEN = re.compile(r"\\x(5c|[89a-f][0-9a-f])")


def storable(text: str) -> str:
    """Return a name in a form that can be stored, and recovered by `as_named`."""
    return shown(_AMBIGUOUS.sub(r"\\x5c", text) if "\\" in text else text)


def shown(text: str) -> str:
    """Return text with names in a form that every database, page and mail accepts."""
    if not _NOT_TEXT.search(text):
        return text
    text = _BYTE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", text)
    return _NOT_TEXT.sub("\ufffd", text)


def as_named(text: str) -> str:
    """Return the name from which `storable` made this text."""
    if "\\" not in text:
        return text
    return _WRITTEN.sub(lambda found: _letter(int(found[1], 16)), text)


def storable_json(value: Any) -> Any:
    """Return JSON with all its text, including keys, made storable."""
    return _each_text(value, storable)


def shown_json(value: Any) -> Any:
    """Return JSON with all its text, including keys, made displayable."""
    return _each_text(value, shown)


def as_named_json(value: Any) -> Any:
    """Return JSON with its original names."""
    return _each_text(value, as_named)


def _letter(byte: int) -> str:
    return "\\" if byte == ord("\\") else chr(0xDC00 + byte)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {
            change(key) if isinstance(key, str) else key: _each_text(item, change)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_each_text(item, change) for item in value]
    return value
