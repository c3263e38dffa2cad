"""Comparing files with the have list: at once, or path by path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from provisioner.gateways.perforce.batching import (
    batches_of,
    local_batches_of,
    shared_out,
    with_rests,
)
from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.paths import escape_path

_VERSIONED = ("-e", "-d")
_UNTRACKED = ("-a", "-f")


def differences(
    connection: Connection,
    *,
    client: str,
    untracked_below: str = "",
    in_batches: bool,
) -> Iterator[Record]:
    """Yield what differs from the have list; each file once.

    With the client's root as `untracked_below` what Perforce does not know, too.

    In batches, what the client has is compared directory by directory of the depot,
    and what it has not is looked for directory by directory on disk: neither list of
    directories has all of the other's.

    Source: p4 reconcile -n.
    """
    everything = f"//{escape_path(client)}/..."
    both = (*_VERSIONED, *_UNTRACKED) if untracked_below else _VERSIONED
    looks: list[tuple[Sequence[str], Sequence[Sequence[str]]]]
    looks = [(both, [[everything]])]
    if in_batches:
        had = shared_out(batches_of(connection, client=client))
        looks = [(_VERSIONED, had)]
        if untracked_below:
            there = shared_out(
                local_batches_of(connection, client=client, root=untracked_below)
            )
            looks.append((_UNTRACKED, there))
    seen: set[str] = set()
    for flags, batches in looks:
        for files in with_rests(batches):
            found: list[Record] = []
            connection.run(
                *("reconcile", "-n", *flags, *files), each=found.append, is_bulk=True
            )
            for record in found:
                if record["depotFile"] not in seen:
                    seen.add(record["depotFile"])
                    yield record
