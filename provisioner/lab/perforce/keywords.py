"""RCS keywords: `$Id$` and its like, filled in as a revision is read.

Source: p4 help filetypes, modifiers +k and +ko.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from provisioner.lab.perforce import octets

_KEYWORD = re.compile(
    rb"\$(Id|Header|Date|DateTime|Change|File|Revision|Author)(?::[^$\n]*)?\$"
)
_OLD = (b"Id", b"Header")


@dataclass(frozen=True, kw_only=True)
class Described:
    """What keywords tell of a revision; `submitted` is seconds since the epoch."""

    path: str
    number: int
    type: str
    change: int
    submitted: int
    author: str


def expanded(data: bytes, *, revision: Described) -> bytes:
    """Return content with the keywords that the revision's type asks for."""
    modifiers = revision.type.partition("+")[2]
    if "k" not in modifiers:
        return data
    moment = time.localtime(revision.submitted)
    name = f"{revision.path}#{revision.number}"
    values = {
        b"Id": name,
        b"Header": name,
        b"Date": time.strftime("%Y/%m/%d", moment),
        b"DateTime": time.strftime("%Y/%m/%d %H:%M:%S", moment),
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
