"""Valid names of clients, labels, branches, depots, users and groups.

Source: the messages about identifiers in the published client library; "Limitations on
characters in filenames and entities" of the command reference. Inferred: that commas
and percent signs are refused in names of every kind, and slashes in all but labels and
branches, whose parts must not be empty, `.` or `..`.
"""

from __future__ import annotations

import re

from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.specstore import find_spec

_NOT_PRINTED = re.compile(r"[\x00-\x1f\x7f]")
# What a name must not have, with the message that says so.
_FORBIDDEN = (
    (6151, ("@", "#")),
    (6155, ("...", "*", "%%")),
    (6629, (",",)),
    (6786, ("%",)),
)
_WITH_SLASHES = frozenset({"label", "branch"})
# Of these a name can stand for only one thing.
_DOMAINS = ("client", "depot", "label", "branch")


def check_identifier(database: Database, *, kind: str, name: str) -> None:
    """Refuse a name that is invalid for its kind.

    Raises: CommandError.
    """
    if not name:
        raise CommandError(6149)
    if name.isdecimal() and kind != "job":
        raise CommandError(6156, id=name)
    if name.startswith("-"):
        raise CommandError(6148, id=name)
    if _NOT_PRINTED.search(name):
        raise CommandError(6150, id=name)
    for number, marks in _FORBIDDEN:
        if any(mark in name for mark in marks):
            raise CommandError(number, id=name)
    if "/" in name:
        _check_slashes(kind, name)
    if kind in _DOMAINS:
        for other in _DOMAINS:
            if other != kind and find_spec(database, kind=other, name=name):
                raise CommandError(6180, name=name, type=other, type2=kind)


def _check_slashes(kind: str, name: str) -> None:
    if kind not in _WITH_SLASHES:
        raise CommandError(6152, id=name)
    parts = name.split("/")
    if "" in parts:
        raise CommandError(6153, id=name)
    if {".", ".."} & set(parts):
        raise CommandError(6154, id=name)
