"""Files on disk compared with the have list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from provisioner.gateways.owners import HOUR, works_on_files
from provisioner.gateways.perforce.batching import (
    Batches,
    batches,
    batches_of,
    local_batches_of,
    with_rests,
)
from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.facet import Facet, form_of
from provisioner.gateways.perforce.ignoring import ignore_file
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.locking import lock_use
from provisioner.gateways.perforce.paths import client_path_to_local, escape_path
from provisioner.gateways.perforce.types import LockUse, ReconcileFinding

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
        on_command: Callable[[LockUse | None], bool] | None = None,
    ) -> list[ReconcileFinding]:
        """Return files that differ from the have list; open none. Local files.

        Without `untracked` only versioned files are compared (-e -d). `ignore` holds
        P4IGNORE patterns, used instead of any ignore file in the tree; a leading slash
        means the Root. `in_batches` compares one directory after another, with pauses
        in which others get the server's locks. The result is the same. `on_command` is
        as in FlushWatch.

        Raises: NotFound (client), Refused (host).
        Source: p4 reconcile -n.
        """
        with self._connected(client, tracks=on_command is not None) as connection:
            root = str(form_of(connection, client)["Root"])
            with ignore_file(ignore, root=root) as path:
                connection.use_ignore_file(path)
                found = _differences(
                    connection,
                    client=client,
                    untracked_below=root if untracked else "",
                    in_batches=in_batches,
                    on_command=on_command,
                )
                return [_finding(record, client=client, root=root) for record in found]

    @works_on_files(within_seconds=12 * HOUR)
    def restore(
        self,
        client: str,
        *,
        in_batches: bool = False,
        on_command: Callable[[LockUse | None], bool] | None = None,
    ) -> list[str]:
        """Fetch again every file that differs from the have list. Local files.

        For trees that nobody works in. Returns the depot paths. `in_batches` and
        `on_command` are as in `reconcile_preview`. Safe to repeat.

        Raises: NotFound (client), Refused (files that could not be written).
        Source: p4 reconcile -n -e -d, p4 sync -f path#have.
        """
        with self._connected(client, tracks=on_command is not None) as connection:
            found = _differences(
                connection, client=client, in_batches=in_batches, on_command=on_command
            )
            differing = [record["depotFile"] for record in found]
            for some in batches(differing):
                connection.run(
                    *("sync", "-f", *(f"{path}#have" for path in some)), is_bulk=True
                )
                if on_command:
                    on_command(lock_use("sync", connection.tracked))
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
    on_command: Callable[[LockUse | None], bool] | None,
) -> Iterator[Record]:
    """Yield the records of files that differ from the have list, each file once.

    Untracked files are included if `untracked_below` names the client's root.

    In batches, versioned files are compared by directories of the depot, and untracked
    ones searched by directories on disk: neither list of directories covers the other.

    Source: p4 reconcile -n.
    """
    everything = f"//{escape_path(client)}/..."
    both = (*_VERSIONED, *_UNTRACKED) if untracked_below else _VERSIONED
    passes: list[tuple[Sequence[str], Sequence[str]]] = [(both, [everything])]
    if in_batches:
        passes = [(_VERSIONED, batches_of(connection, client=client))]
        if untracked_below:
            there = local_batches_of(connection, client=client, root=untracked_below)
            passes.append((_UNTRACKED, there))
    seen: set[str] = set()
    for flags, paths in passes:
        shares = Batches(paths)
        for files in with_rests(shares):
            found: list[Record] = []
            connection.run(
                *("reconcile", "-n", *flags, *files), each=found.append, is_bulk=True
            )
            if on_command:
                use = lock_use("reconcile", connection.tracked)
                shares.adapt(others_wait=on_command(use))
            for record in found:
                if record["depotFile"] not in seen:
                    seen.add(record["depotFile"])
                    yield record
