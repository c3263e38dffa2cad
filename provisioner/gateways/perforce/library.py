"""The one way to Perforce's own library: text on our side, bytes on the other.

For a server that is not in Unicode mode, a name is bytes, in the encoding of whichever
host created it. Here it is text as os.fsdecode makes it, so that bytes which are not
UTF-8 survive the round trip. Given such text, the library ends the whole process: in
commands, setters and maps alike. In its answers it replaces such bytes with U+FFFD,
which makes another name. So the library gets only bytes, or text that it can encode,
and is set to answer in bytes.

Source: P4.encoding in the P4Python guide; CreatePythonStringAndSize and GetPythonString
in its source; tried with 2026.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from P4 import P4, P4Exception
from P4 import Map as LibraryMap
from P4 import OutputHandler as OutputHandler

from provisioner.gateways.errors import Refused
from provisioner.gateways.perforce.specs import form_fields

Record = dict[str, Any]
LibraryError = P4Exception

# What the library writes in place of bytes that it cannot decode.
_UNREADABLE = "\ufffd"
_CONDITION = re.compile(r"\[([^\]|]*)(?:\|([^\]]*))?\]")
_VARIABLE = re.compile(r"%(?:'([^']*)'|(\w+))%")


def as_bytes(text: str) -> bytes:
    """Return text as bytes, which the library accepts in commands and maps.

    Raises: Refused (a NUL, at which the library would cut it off; a surrogate that does
    not stand for a byte).
    """
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise _refused(f"{text[:200]!r} is not text.") from error
    if b"\0" in data:
        raise _refused(f"{text[:200]!r} contains NUL.")
    return data


def as_text(data: bytes) -> str:
    """Return bytes of a server as text; `as_bytes` turns it back."""
    return data.decode("utf-8", "surrogateescape")


def as_number(field: str | None) -> int:
    """Return a decimal field as a number, 0 for anything else."""
    return int(field) if field and field.isdecimal() else 0


def is_utf8(text: str) -> bool:
    """Return whether text came from valid UTF-8."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def settable(text: str, *, what: str, is_secret: bool = False) -> str:
    """Return text that an attribute of the library or a form accepts: not bytes.

    Raises: Refused.
    """
    if is_utf8(text) and "\0" not in text:
        return text
    named = what if is_secret else f"{what} {text[:200]!a}"
    raise _refused(
        f"{named} contains NUL or bytes that are not UTF-8, so it cannot be written. "
        "Use a name or a wildcard without them."
    )


def new_library() -> Any:
    """Return the library's object, set to answer in bytes."""
    library = text_library()
    library.encoding = "raw"
    return library


def text_library() -> Any:
    """Return the library's object, which answers in text: other bytes are lost.

    For programs that pass no name from an answer back. Arguments are bytes there, too.
    """
    return P4()


def record_of(answer: Mapping[str, Any]) -> Record:
    """Return a record with its bytes decoded."""
    # Runs once per file of a have list, so the usual value costs no call of ours.
    return {
        name: value.decode("utf-8", "surrogateescape")
        if type(value) is bytes
        else _text_of(value)
        for name, value in answer.items()
    }


def _text_of(value: Any) -> Any:
    if isinstance(value, bytes):
        return as_text(value)
    if isinstance(value, list):
        return [_text_of(item) for item in value]
    return value


def is_blurred(record: Record) -> bool:
    """Return whether bytes of a form were lost: the library decodes forms itself."""
    return any(
        _UNREADABLE in text
        for value in record.values()
        for text in (value if isinstance(value, list) else [value])
        if text
    )


def reread(record: Record, form: str) -> Record:
    """Return the record of a form, with lost values taken from the form's text."""
    lines = form_fields(form)
    return record | {
        name: lines[name] if isinstance(value, list) else _joined(lines[name], value)
        for name, value in record.items()
        if name in lines and is_blurred({name: value})
    }


def _joined(lines: list[str], value: str) -> str:
    return "\n".join(lines).rstrip("\n") + ("\n" if value.endswith("\n") else "")


def message_text(message: Any) -> str:
    """Return the text of a message, formatted again if the library lost bytes."""
    text = str(message)
    if _UNREADABLE not in text:
        return text
    said = record_of(message.dict)
    sentences = said.get("fmt") or [text]

    def fill(template: str) -> str:
        return _VARIABLE.sub(
            lambda found: found[1] or str(said.get(found[2], "")), template
        )

    def choose(found: re.Match[str]) -> str:
        names = [name for _, name in _VARIABLE.findall(found[1]) if name]
        return found[1] if all(said.get(name) for name in names) else found[2] or ""

    return "\n".join(fill(_CONDITION.sub(choose, line)) for line in sentences)


class ViewMap:
    """Perforce's own mapping of a view.

    It answers only in text, so each byte goes in and out as a Latin-1 character.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._map = LibraryMap()
        for line in lines:
            self.insert(line)

    @classmethod
    def of_path(cls, path: str) -> ViewMap:
        """Return a map of a depot path to itself."""
        return cls([f'"{path}" "{path}"'])

    def insert(self, line: str) -> None:
        """Add a line of a view. Later lines override earlier ones."""
        self._map.insert(_as_letters(line))

    def includes(self, path: str) -> bool:
        return self.translate(path) is not None

    def translate(self, path: str) -> str | None:
        """Return the right side of a left-hand path, None if it is not mapped."""
        found = self._map.translate(_as_letters(path))
        return None if found is None else _from_letters(found)

    def joined(self, other: ViewMap) -> list[str]:
        """Return the lines that map our left side to the other's right side."""
        lines = LibraryMap.join(self._map, other._map).as_array()
        return [_from_letters(line) for line in lines]

    def left_joined(self, other: ViewMap) -> list[str]:
        """Return the left sides of `joined`."""
        lines = LibraryMap.join(self._map, other._map).lhs()
        return [_from_letters(line) for line in lines]


def _as_letters(text: str) -> str:
    return as_bytes(text).decode("latin-1")


def _from_letters(text: str) -> str:
    return as_text(text.encode("latin-1"))


def _refused(sentence: str) -> Refused:
    return Refused(sentence, system="perforce", operation="name")
