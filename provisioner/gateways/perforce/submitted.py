"""What was submitted, and whom it concerns: for watching a server.

One command lists the numbers of a batch, one describes them. Asked without a file
argument, `changes -r -e N` reads the table of changes by key from N on and stops after
the batch, whatever the depot holds. `describe -s N…` then reads the files of these
changes by key, all in one command. `files //...@=N` would need an argument and a walk
over revisions for each, and counts each time against MaxScanRows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.library import Record, ViewMap
from provisioner.gateways.perforce.paths import escape_path, folded
from provisioner.gateways.perforce.types import SubmittedBatch, SubmittedChange
from provisioner.lib.storable import shown


class DepotView:
    """The left side of a client view, as Perforce's own mapping reads it."""

    def __init__(self, view: Iterable[str], *, is_case_sensitive: bool = True) -> None:
        self._folds = not is_case_sensitive
        self._map = ViewMap(map(self._same, view))

    def touches(self, paths: Iterable[str]) -> bool:
        """Say whether any of these depot paths is mapped."""
        return any(self._map.includes(self._same(path)) for path in paths)

    def overlaps(self, path: str) -> bool:
        """Say whether a depot path, with wildcards or without, has mapped files."""
        lines = ViewMap.of_path(self._same(path)).joined(self._map)
        return any(not line.lstrip('"').startswith("-") for line in lines)

    def _same(self, text: str) -> str:
        """Return what compares equal where the server takes it for equal."""
        return folded(text) if self._folds else text


def touches(
    view: Iterable[str], paths: Iterable[str], *, is_case_sensitive: bool = True
) -> bool:
    """Say whether a change of these depot paths concerns a client of this view."""
    return DepotView(view, is_case_sensitive=is_case_sensitive).touches(paths)


def submitted_after(
    connection: Connection, *, change: int, at_most: int
) -> SubmittedBatch:
    """Return the next submitted changes after this one, in order."""
    numbers = _numbers(
        connection, *("-r", "-m", str(at_most), "-e", str(change + 1), "-s"), paths=()
    )
    return _described(connection, numbers)


def submitted_under(
    connection: Connection,
    *,
    paths: Sequence[str],
    above: int,
    upto: int,
    at_most: int,
) -> SubmittedBatch:
    """Return the newest submitted changes of these paths in a range, newest first."""
    if above >= upto or not paths:
        return _described(connection, [])
    ranged = tuple(f"{path}@{above + 1},@{upto}" for path in paths)
    numbers = _numbers(connection, *("-m", str(at_most), "-s"), paths=ranged)
    return _described(connection, numbers)


def submitted_to(
    connection: Connection, *, client: str, above: int, upto: int, at_most: int
) -> list[SubmittedChange]:
    """Return the newest submitted changes to a client's view in a range, in order."""
    records = connection.run(
        *("changes", "-L", "-m", str(at_most), "-s", "submitted"),
        f"//{escape_path(client)}/...@{above + 1},@{upto}",
        is_bulk=True,
    ).records
    return [_submitted(record) for record in reversed(records)]


def _numbers(connection: Connection, *flags: str, paths: tuple[str, ...]) -> list[str]:
    records = connection.run(
        "changes", *flags, "submitted", *paths, is_bulk=bool(paths)
    ).records
    return [record["change"] for record in records]


def _described(connection: Connection, numbers: list[str]) -> SubmittedBatch:
    records: list[Record] = []
    if numbers:
        records = connection.run("describe", "-s", *numbers, is_bulk=True).records
    return SubmittedBatch(
        changes=tuple(_submitted(record) for record in records),
        is_case_sensitive=connection.is_case_sensitive,
    )


def _submitted(record: Record) -> SubmittedChange:
    lines = str(record.get("desc", "")).strip().splitlines()
    paths = record.get("depotFile", ())
    return SubmittedChange(
        number=int(record["change"]),
        user=shown(record["user"]),
        submitted_at=dt.datetime.fromtimestamp(int(record["time"]), tz=dt.UTC),
        title=shown(lines[0]) if lines else "",
        paths=tuple(paths),
    )
