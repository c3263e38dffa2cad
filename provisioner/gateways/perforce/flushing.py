"""Flushing a client: at once, or so that others get the server's locks in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from provisioner.gateways.perforce.batching import batches_of, shared_out, with_rests
from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.errors import LEFT_BEHIND_BY_SYNC
from provisioner.gateways.perforce.generations import pinned_files
from provisioner.gateways.perforce.locking import lock_use
from provisioner.gateways.perforce.types import LockUse, Part


def flush(
    connection: Connection,
    *,
    client: str,
    change: int,
    parts: Sequence[Part],
    in_batches: bool,
    on_command: Callable[[LockUse], None] | None,
) -> None:
    """Keep the contract of PerforceGateway.flush.

    Source: p4 sync -k -q.
    """
    everything, *others = pinned_files(client, change=change, parts=parts)
    batches: list[Sequence[str]] = [[everything]]
    if in_batches:
        batches = shared_out(batches_of(connection, client=client, change=change))
    for files in with_rests([*batches, *([one] for one in others)]):
        connection.run(
            *("sync", "-k", "-q", *files),
            is_bulk=True,
            also_failures=LEFT_BEHIND_BY_SYNC,
        )
        use = lock_use("sync -k", connection.tracked) if on_command else None
        if on_command and use:
            on_command(use)
