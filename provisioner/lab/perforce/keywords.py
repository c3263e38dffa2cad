"""RCS keywords such as `$Id$`, expanded when a revision is made or restored.

A revision is stored as everybody reads it, and its digest is that of the expanded text,
as in checkpoints.

Source: p4 help filetypes, modifiers +k and +ko; "Keyword expansion" in the command
reference, for the forms.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from provisioner.lab.perforce import octets
from provisioner.lab.perforce.filetypes import modifiers_of

_KEYWORD = re.compile(
    rb"\$(Id|Header|Date(?:UTC|TimeUTC|TimeTZ|Time)?|Change|File|Revision|Author)"
    rb"(?::[^$\n]*)?\$"
)
_OLD = (b"Id", b"Header")


@dataclass(frozen=True, kw_only=True)
class Described:
    """The values of a revision's keywords; `submitted` is seconds since the epoch."""

    path: str
    number: int
    type: str
    change: int
    submitted: int
    author: str


def has_keywords(file_type: str) -> bool:
    """Return whether a type expands keywords."""
    return "k" in modifiers_of(file_type)


def collapsed(data: bytes, *, file_type: str) -> bytes:
    """Return content with empty keywords, as first written."""
    only_old = "o" in modifiers_of(file_type)

    def empty(match: re.Match[bytes]) -> bytes:
        is_kept = only_old and match[1] not in _OLD
        return match[0] if is_kept else b"$" + match[1] + b"$"

    return _KEYWORD.sub(empty, data) if has_keywords(file_type) else data


def expanded(data: bytes, *, revision: Described) -> bytes:
    """Return content with the keywords that the revision's type expands."""
    modifiers = modifiers_of(revision.type)
    if "k" not in modifiers:
        return data
    moment, utc = time.localtime(revision.submitted), time.gmtime(revision.submitted)
    name = f"{revision.path}#{revision.number}"
    values = {
        b"Id": name,
        b"Header": name,
        b"Date": time.strftime("%Y/%m/%d", moment),
        b"DateUTC": time.strftime("%Y/%m/%d", utc),
        b"DateTime": time.strftime("%Y/%m/%d %H:%M:%S", moment),
        b"DateTimeUTC": time.strftime("%Y/%m/%d %H:%M:%S", utc),
        b"DateTimeTZ": time.strftime("%Y/%m/%d %H:%M:%S %z %Z", moment),
        b"Change": str(revision.change),
        b"File": revision.path,
        b"Revision": f"#{revision.number}",
        b"Author": revision.author,
    }

    def fill(match: re.Match[bytes]) -> bytes:
        if "o" in modifiers and match[1] not in _OLD:
            return match[0]
        return b"$" + match[1] + b": " + octets.bytes_of(values[match[1]]) + b" $"

    return _KEYWORD.sub(fill, data)
