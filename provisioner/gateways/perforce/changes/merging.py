"""Opened files brought up to a later revision, and conflicts left to resolve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from provisioner.gateways.owners import HOUR, works_on_files
from provisioner.gateways.perforce.batching import batches
from provisioner.gateways.perforce.changes.pending import DEFAULT_CHANGE, PendingChanges
from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.depot_view import DepotView
from provisioner.gateways.perforce.facet import Facet, form_of
from provisioner.gateways.perforce.paths import escape_path
from provisioner.gateways.perforce.types import (
    MergeReport,
    OpenedFile,
    Part,
    ToResolve,
)


class Merging(Facet):
    """Merge the user's opened files with what others have submitted since."""

    def as_edits(self, client: str, paths: Sequence[str]) -> list[OpenedFile]:
        """Return files of the have list as if our user had opened them for edit.

        In the default change, at the revisions that the client has. Depot paths that
        it does not have are left out.

        Raises: NotFound (client), Refused (host, locked by another owner).
        Source: p4 have, p4 files path#revision.
        """
        files = []
        with self._connected(client) as connection:
            form_of(connection, client)
            for some in batches(list(paths)):
                have = connection.run("have", *some, is_bulk=True).records
                had = {record["depotFile"]: record for record in have}
                if not had:
                    continue
                named = [f"{path}#{record['haveRev']}" for path, record in had.items()]
                for record in connection.run("files", *named, is_bulk=True).records:
                    path = record["depotFile"]
                    files.append(
                        OpenedFile(
                            depot_file=path,
                            client_file=had[path]["clientFile"],
                            action="edit",
                            change=DEFAULT_CHANGE,
                            user=connection.account.user,
                            client=client,
                            type=record["type"],
                            revision=int(had[path]["haveRev"]),
                        )
                    )
        return files

    def to_resolve(self, client: str) -> list[ToResolve]:
        """Return the opened files of our user that must be resolved.

        Raises: NotFound (client), Refused (host, locked by another owner).
        Source: p4 resolve -n, p4 where.
        """
        found = []
        with self._connected(client) as connection:
            form_of(connection, client)
            records = connection.run(
                "resolve", "-n", f"//{escape_path(client)}/...", is_bulk=True
            ).records
            places = {record["clientFile"]: record for record in records}
            for some in batches([escape_path(place) for place in places]):
                for where in connection.run("where", *some, is_bulk=True).records:
                    record = places.get(where["path"])
                    if record is not None and "unmap" not in where:
                        found.append(
                            ToResolve(
                                depot_file=where["depotFile"],
                                path=where["path"],
                                from_revision=record.get("endFromRev", ""),
                            )
                        )
        return found

    @works_on_files(within_seconds=4 * HOUR)
    def merge_opened(
        self, client: str, *, change: int, parts: Sequence[Part] = ()
    ) -> MergeReport:
        """Merge the submitted change into what our user has opened. Local files.

        Files below one of the `parts` are merged with that part's change instead. Only
        files without conflicts are merged; all others stay scheduled for resolve and
        are reported. A file opened at a later revision stays there. Safe to repeat.

        Raises: NotFound (client), Refused (host, locked by another owner).
        Source: p4 files path@change, p4 sync path@change, p4 resolve -am, p4 resolve
        -n, p4 resolved.
        """
        with self._connected(client) as connection:
            form_of(connection, client)
            opened = {
                file.depot_file: file
                for file in PendingChanges.on(connection).list_opened(client)
                if connection.is_same_name(file.user, connection.account.user)
            }
            based = [path for path, file in opened.items() if file.revision]
            pinned = _pinned(connection, based, change=change, parts=parts)
            behind, changed, gone = [], [], []
            for path, (revision, action) in _at(connection, pinned).items():
                file = opened[path]
                if revision <= file.revision:
                    continue
                if "delete" in action:
                    gone.append(path)
                elif file.action == "edit":
                    behind.append(path)
                else:
                    changed.append(path)
            for some in batches([f"{path}@{pinned[path]}" for path in behind]):
                connection.run("sync", *some, is_bulk=True)
            left = _resolve_safely(connection, client)
            unmerged = {item.depot_file for item in left}
            merged = _merged(connection, client=client) & opened.keys() - unmerged
        return MergeReport(
            merged=tuple(sorted(merged)),
            to_resolve=tuple(left),
            changed={path: pinned[path] for path in changed},
            gone={path: pinned[path] for path in gone},
        )


def _resolve_safely(connection: Connection, client: str) -> list[ToResolve]:
    """Merge what has no conflict; return the rest."""
    merging = Merging.on(connection)
    scheduled = {item.depot_file for item in merging.to_resolve(client)}
    for some in batches(sorted(scheduled)):
        connection.run("resolve", "-am", *some, is_bulk=True)
    return merging.to_resolve(client)


def _merged(connection: Connection, *, client: str) -> set[str]:
    """Return the files that were merged with later revisions of themselves."""
    records = connection.run(
        "resolved", f"//{escape_path(client)}/...", is_bulk=True
    ).records
    return {r["toFile"] for r in records if r["fromFile"] == r["toFile"]}


def _pinned(
    connection: Connection, paths: Sequence[str], *, change: int, parts: Sequence[Part]
) -> dict[str, int]:
    """Return the change for each path: that of the last part containing it."""
    is_exact = connection.is_case_sensitive
    views = {
        part: DepotView([f'"{part.path}" "{part.path}"'], is_case_sensitive=is_exact)
        for part in reversed(parts)
    }

    def change_of(path: str) -> int:
        having = (part for part, view in views.items() if view.touches([path]))
        return next((part.change for part in having), change)

    return {path: change_of(path) for path in paths}


def _at(
    connection: Connection, pinned: Mapping[str, int]
) -> dict[str, tuple[int, str]]:
    """Return revision and action of each path at its change."""
    found = {}
    for some in batches([f"{path}@{change}" for path, change in pinned.items()]):
        for record in connection.run("files", *some, is_bulk=True).records:
            found[record["depotFile"]] = (int(record["rev"]), record["action"])
    return found
