"""Releases of Perforce programs, such as "2024.2", and which is older."""

from __future__ import annotations

import re

_OF_P4D = re.compile(r"P4D/[^/\s]+/(\d{4}\.\d+)")


def p4d_release_in(version: str) -> str:
    """Return the release in what a server says of itself, "" if it says none.

    Source: serverVersion of p4 info, and p4d -V: "P4D/LINUX26X86_64/2024.2/…".
    """
    found = _OF_P4D.search(version)
    return found[1] if found else ""


def is_older(release: str, than: str) -> bool:
    """Return whether a release came before another; False if one is ""."""
    return bool(release and than) and _numbers(release) < _numbers(than)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))
