"""Whether names that differ in case are one: for all of a server, and for good.

A server that ignores case (-C1) takes ASCII letters of both cases for the same, in
names of files, clients, users and everything else, and in their order. What it keeps
and shows is as it was first written. Like p4d, a process has one answer for all of it.

Source: p4d -C1; StrPtr::SetCaseFolding in the published client source.
"""

from __future__ import annotations

import re

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class _Mode:
    ignores_case = False


def ignore_case(ignores_case: bool) -> None:
    """Say how this process compares names, before it has compared any."""
    _Mode.ignores_case = ignores_case


def is_ignored() -> bool:
    """Tell if names that differ in case are one."""
    return _Mode.ignores_case


def folded(name: str) -> str:
    """Return what is equal for names that are one, and in the server's order."""
    if not _Mode.ignores_case:
        return name
    return name.lower() if name.isascii() else name.translate(_LOWER)


def same(one: str, other: str) -> bool:
    """Tell if two names are one."""
    return folded(one) == folded(other)


def begins(name: str, prefix: str) -> bool:
    """Tell if a name begins with a prefix."""
    return folded(name).startswith(folded(prefix))


def flags() -> re.RegexFlag:
    """Return how an expression over names is compiled."""
    ignoring = re.IGNORECASE | re.ASCII if _Mode.ignores_case else re.NOFLAG
    return re.DOTALL | ignoring


def columns(statement: str) -> str:
    """Return a definition of tables whose text compares as names do."""
    if not _Mode.ignores_case:
        return statement
    return statement.replace(" TEXT", " TEXT COLLATE NOCASE")
