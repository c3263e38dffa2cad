"""Files on disk compared with the have list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from provisioner.gateways.owners import HOUR, works_on_files
from provisioner.gateways.perforce.batching import (
    batches,
    batches_of,
    local_batches_of,
    shared_out,
    with_rests,
)
from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.facet import Facet, form_of
from provisioner.gateways.perforce.ignoring import ignore_file
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.paths import client_path_to_local, escape_path
from provisioner.gateways.perforce.types import ReconcileFinding

_VERSIONED = ("-e", "-d")
_UNTRACKED = ("-a", "-f")


class Reconciling(Facet):
    """Compare a tree with the have list, and restore it."""

    @works_on_files(within_seconds=4 * HOUR)
    def reconcile_preview(
        self,
        client: str,
        *,
        untracked: bool,
        ignore: tuple[str, ...] = (),
        in_batches: bool = False,
    ) -> list[ReconcileFinding]:
        """Return files that differ from the have list; open none. Local files.

        Without `untracked` only versioned files are compared (-e -d). `ignore` holds
        P4IGNORE patterns, used instead of any ignore file in the tree; a leading slash
        means the Root. `in_batches` compares one directory after another, with pauses
        in which others get the server's locks. The result is the same.

        Raises: NotFound (client), Refused (host).
        Source: p4 reconcile -n.
        """
        with self._connected(client) as connection:
            root = str(form_of(connection, client)["Root"])
            with ignore_file(ignore, root=root) as path:
                connection.use_ignore_file(path)
                found = _differences(
                    connection,
                    client=client,
                    untracked_below=root if untracked else "",
                    in_batches=in_batches,
                )
                return [_finding(record, client=client, root=root) for record in found]

    @works_on_files(within_seconds=12 * HOUR)
    def restore(self, client: str, *, in_batches: bool = False) -> list[str]:
        """Fetch again every file that differs from the have list. Local files.

        For trees that nobody works in. Returns the depot paths. `in_batches` is as in
        `reconcile_preview`. Safe to repeat.

        Raises: NotFound (client), Refused (files that could not be written).
        Source: p4 reconcile -n -e -d, p4 sync -f path#have.
        """
        with self._connected(client) as connection:
            found = _differences(connection, client=client, in_batches=in_batches)
            differing = [record["depotFile"] for record in found]
            for some in batches(differing):
                connection.run(
                    *("sync", "-f", *(f"{path}#have" for path in some)), is_bulk=True
                )
        return differing


def _finding(record: Record, *, client: str, root: str) -> ReconcileFinding:
    path = record.get("localFile") or record["clientFile"]
    return ReconcileFinding(
        action=record["action"].removeprefix("move/"),
        depot_file=record["depotFile"],
        path=client_path_to_local(path, client=client, root=root),
    )


def _differences(
    connection: Connection,
    *,
    client: str,
    untracked_below: str = "",
    in_batches: bool,
) -> Iterator[Record]:
    """Yield the records of files that differ from the have list, each file once.

    Untracked files are included if `untracked_below` names the client's root.

    In batches, versioned files are compared by directories of the depot, and untracked
    ones searched by directories on disk: neither list of directories covers the other.

    Source: p4 reconcile -n.
    """
    everything = f"//{escape_path(client)}/..."
    both = (*_VERSIONED, *_UNTRACKED) if untracked_below else _VERSIONED
    passes: list[tuple[Sequence[str], Sequence[Sequence[str]]]]
    passes = [(both, [[everything]])]
    if in_batches:
        had = shared_out(batches_of(connection, client=client))
        passes = [(_VERSIONED, had)]
        if untracked_below:
            there = shared_out(
                local_batches_of(connection, client=client, root=untracked_below)
            )
            passes.append((_UNTRACKED, there))
    seen: set[str] = set()
    for flags, commands in passes:
        for files in with_rests(commands):
            found: list[Record] = []
            connection.run(
                *("reconcile", "-n", *flags, *files), each=found.append, is_bulk=True
            )
            for record in found:
                if record["depotFile"] not in seen:
                    seen.add(record["depotFile"])
                    yield record
