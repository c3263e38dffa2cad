"""Programs rejected by the configurable rejectList.

    rejectList=P4EXP,p4,version=2013.1

A version belongs to the name before it, and is compared with everything that the client
says of itself: its release, build number and platform. There are no wildcards, and the
log does not mention it.

Source: "Reject client connection requests" of the administrator's guide. Inferred: that
a name is the first word of what a program calls itself, and a version any part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

_VERSION = "version="


def is_rejected(listed: str, *, program: str, version: str) -> bool:
    """Return whether the list names this program or its version."""
    name = program.partition(" ")[0]
    said = f"{program}/{version}"
    return any(
        name == wanted and (not release or release in said)
        for wanted, release in _entries(listed)
    )


def _entries(listed: str) -> Iterator[tuple[str, str]]:
    """Yield names with the rejected version of each, "" for all."""
    words = [word.strip() for word in listed.split(",") if word.strip()]
    for word, after in pairwise([*words, ""]):
        if not word.startswith(_VERSION):
            of_version = after.startswith(_VERSION)
            yield word, after.removeprefix(_VERSION) if of_version else ""
