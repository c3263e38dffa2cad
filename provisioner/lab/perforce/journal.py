"""Journals and checkpoints as records: the text form of a Perforce database.

A record is a line of words; text stands between `@`, with `@@` for one of its own, and
may contain line ends.

Source: Perforce server schema; p4d -jd.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from provisioner.lab.perforce import octets

_GZIP = b"\x1f\x8b"
_TOKEN = re.compile(rb"@((?:[^@]|@@)*)@|(\S+)")


class Record(NamedTuple):
    """One record; `version` is that of the table's layout."""

    operation: str
    version: int
    table: str
    values: list[str]

    def integer(self, index: int) -> int:
        return int(self.values[index])

    def text(self, index: int) -> str:
        """Return a value; "" if this layout does not have it."""
        return self.values[index] if index < len(self.values) else ""


class JournalError(Exception):
    """The file is not a journal or checkpoint; the message says where."""


def records(path: Path) -> Iterator[Record]:
    """Yield the records that put values, without notes and transaction marks.

    Raises: JournalError, OSError.
    """
    with open(path, "rb") as file:
        is_compressed = file.read(2) == _GZIP
        file.seek(0)
        if not is_compressed:
            yield from _records(file)
            return
        with gzip.open(file) as plain:
            yield from _records(plain)  # type: ignore[arg-type]


def _records(file: BinaryIO) -> Iterator[Record]:
    pending = b""
    for number, line in enumerate(file, start=1):
        pending += line
        # Inside a text: an odd number of @ so far.
        if pending.count(b"@") % 2:
            continue
        record = _record(pending, number)
        pending = b""
        if record is not None:
            yield record
    if pending.strip():
        raise JournalError("the file ends in the middle of a record")


def _record(line: bytes, number: int) -> Record | None:
    words = [
        octets.text_of(quoted.replace(b"@@", b"@") if bare == b"" else bare)
        for quoted, bare in _TOKEN.findall(line)
    ]
    if not words:
        return None
    if not line.startswith(b"@") or len(words[0]) != 2:
        raise JournalError(f"line {number} is not a journal record")
    if words[0] not in ("pv", "rv", "dv", "vv"):
        return None  # a note, a mark or the end of a transaction
    if len(words) < 3 or not words[1].isdecimal():
        raise JournalError(f"line {number} is not a journal record")
    return Record(words[0], int(words[1]), words[2], words[3:])
