"""Submitted changes.

One command lists the numbers of a batch, a second describes them. Without a file
argument, `changes -r -e N` reads the table of changes by key from N on and stops after
the batch, however large the depot is. `describe -s N…` then reads the files of all
these changes by key. `files //...@=N` would need one argument and one scan of the
revisions per change, and each scan counts against MaxScanRows.
"""

from __future__ import annotations

import datetime as dt

from provisioner.gateways.errors import NotFound
from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.errors import NO_SUCH_CHANGE
from provisioner.gateways.perforce.facet import Facet, form_of
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.paths import escape_path
from provisioner.gateways.perforce.types import SubmittedBatch, SubmittedChange
from provisioner.lib.storable import shown


class SubmittedChanges(Facet):
    """What has been submitted."""

    def latest(self, paths: tuple[str, ...]) -> int:
        """Return the newest submitted change under the depot paths, 0 if none.

        Without paths: the newest of the whole server, which costs one row.

        Source: p4 changes -m1 -s submitted.
        """
        with self._connected() as connection:
            records = connection.run(
                "changes", "-m", "1", "-s", "submitted", *paths, is_bulk=bool(paths)
            ).records
        return int(records[0]["change"]) if records else 0

    def is_submitted(self, change: int) -> bool:
        """Return whether the change exists, is submitted, and our account may see it.

        Asks for the first change from this number on, which the server finds by key:
        `describe` would list all files, and a path would count against MaxScanRows.

        Source: p4 changes -r -m 1 -e change -s submitted.
        """
        with self._connected() as connection:
            records = connection.run(
                *("changes", "-r", "-m", "1", "-e", str(change), "-s", "submitted")
            ).records
        return bool(records) and int(records[0]["change"]) == change

    def require_submitted(self, change: int) -> None:
        """Refuse a change that is not submitted: a sync would take the one before it.

        Raises: NotFound.
        """
        if not self.is_submitted(change):
            raise NotFound(
                f"There is no submitted change {change} that this account may see.",
                system="perforce",
                operation="changes",
                remote_code=str(NO_SUCH_CHANGE),
            )

    def submitted_after(self, change: int, *, at_most: int) -> SubmittedBatch:
        """Return the next submitted changes after this one, oldest first, with paths.

        Two commands, however large the depot is; one if nothing is new.

        Source: p4 changes -r -m N -e C -s submitted, p4 describe -s.
        """
        flags = ("-r", "-m", str(at_most), "-e", str(change + 1), "-s", "submitted")
        with self._connected() as connection:
            records = connection.run("changes", *flags).records
            return _described(connection, records)

    def submitted_under(
        self, paths: tuple[str, ...], *, above: int, upto: int, at_most: int
    ) -> SubmittedBatch:
        """Return the newest submitted changes to depot paths in a range, newest first.

        Source: p4 changes -m N -s submitted path@A,@B, p4 describe -s.
        """
        ranged = [f"{path}@{above + 1},@{upto}" for path in paths]
        flags = ("-m", str(at_most), "-s", "submitted")
        with self._connected() as connection:
            records: list[Record] = []
            if above < upto and paths:
                records = connection.run(
                    "changes", *flags, *ranged, is_bulk=True
                ).records
            return _described(connection, records)

    def submitted_to(
        self, client: str, *, above: int, upto: int, at_most: int
    ) -> list[SubmittedChange]:
        """Return the newest submitted changes to a client's view in a range.

        Oldest first, without their `paths`: one command, and one row per change.

        Raises: NotFound (client).
        Source: p4 changes -L -m N -s submitted //client/...@A,@B.
        """
        with self._connected(client) as connection:
            form_of(connection, client)
            records = connection.run(
                *("changes", "-L", "-m", str(at_most), "-s", "submitted"),
                f"//{escape_path(client)}/...@{above + 1},@{upto}",
                is_bulk=True,
            ).records
        return [_submitted(record) for record in reversed(records)]


def _described(connection: Connection, listed: list[Record]) -> SubmittedBatch:
    records: list[Record] = []
    if numbers := [record["change"] for record in listed]:
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
