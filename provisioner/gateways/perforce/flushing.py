"""Flushing a client: at once, or so that others get the server's locks in between."""

from __future__ import annotations

import math
import random
import shlex
import time
from collections.abc import Callable, Sequence

from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.errors import LEFT_BEHIND_BY_SYNC
from provisioner.gateways.perforce.generations import pinned_files
from provisioner.gateways.perforce.locking import lock_use
from provisioner.gateways.perforce.pending import form_of
from provisioner.gateways.perforce.types import LockUse, Part

# The command that lists a directory is asked at most so often for each line of a view.
_DEEPEST = 3
_ENOUGH = 4
# More directories than this share commands.
_MOST = 100
# A rest between batches lasts up to as long as the batch did, and not longer than this.
LONGEST_REST_SECONDS = 1.0


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

    Source: p4 sync -k -q, p4 dirs.
    """
    everything, *others = pinned_files(client, change=change, parts=parts)
    batches: list[Sequence[str]] = [[everything]]
    if in_batches:
        paths = batches_of(connection, client=client, change=change)
        size = max(1, math.ceil(len(paths) / _MOST))
        batches = [paths[at : at + size] for at in range(0, len(paths), size)]
    took = 0.0
    for number, files in enumerate([*batches, *([one] for one in others)]):
        if number:
            time.sleep(random.uniform(0, min(took, LONGEST_REST_SECONDS)))  # noqa: S311 - no secret
        began = time.monotonic()
        connection.run(
            *("sync", "-k", "-q", *files),
            is_bulk=True,
            also_failures=LEFT_BEHIND_BY_SYNC,
        )
        took = time.monotonic() - began
        use = lock_use("sync -k", connection.tracked) if on_command else None
        if on_command and use:
            on_command(use)


def batches_of(connection: Connection, *, client: str, change: int) -> list[str]:
    """Return arguments that cover a client's view by directories of the depot.

    Several may have nothing for the client: its view leaves them out.
    """
    view = form_of(connection, client).get("View", [])
    lines = [shlex.split(line)[0] for line in view]
    found: list[str] = []
    for depot in (line.lstrip("+&") for line in lines if not line.startswith("-")):
        found += _batches_below(connection, depot, change=change)
    return found


def _batches_below(connection: Connection, depot: str, *, change: int) -> list[str]:
    """Return a path, or the directories below it with the files beside them."""
    parents, files = [depot], []
    for _ in range(_DEEPEST):
        if len(parents) >= _ENOUGH or not all(p.endswith("/...") for p in parents):
            break
        tops = [parent.removesuffix("...") for parent in parents]
        listed = connection.run(
            "dirs", *(f"{top}*@{change}" for top in tops), is_bulk=True
        )
        below = [f"{record['dir']}/..." for record in listed.records]
        if not below:
            break
        files += [f"{top}*" for top in tops]
        parents = below
    return [f"{path}@{change}" for path in (*parents, *files)]
