"""Whether names that differ in case are the same, for all of a server, permanently.

A server that ignores case (-C1) treats upper- and lower-case ASCII letters as equal, in
names of files, clients, users and everything else, and in their order. It stores and
shows names as they were first written. Like in p4d, all of a process has one setting.

Source: p4d -C1; StrPtr::SetCaseFolding in the published client source.
"""

from __future__ import annotations

import re

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class _Mode:
    ignores_case = False


def ignore_case(ignores_case: bool) -> None:
    """Set how this process compares names, before it has compared any."""
    _Mode.ignores_case = ignores_case


def is_ignored() -> bool:
    """Return whether names that differ in case are the same."""
    return _Mode.ignores_case


def folded(name: str) -> str:
    """Return a key that is equal for equal names, and sorts in the server's order."""
    if not _Mode.ignores_case:
        return name
    return name.lower() if name.isascii() else name.translate(_LOWER)


def same(one: str, other: str) -> bool:
    """Return whether two names are one."""
    return folded(one) == folded(other)


def begins(name: str, prefix: str) -> bool:
    """Return whether a name begins with a prefix."""
    return folded(name).startswith(folded(prefix))


def flags() -> re.RegexFlag:
    """Return the flags to compile an expression over names with."""
    ignoring = re.IGNORECASE | re.ASCII if _Mode.ignores_case else re.NOFLAG
    return re.DOTALL | ignoring


def columns(statement: str) -> str:
    """Return a definition of tables whose text compares as names do."""
    if not _Mode.ignores_case:
        return statement
    return statement.replace(" TEXT", " TEXT COLLATE NOCASE")
