"""Trees of templates: brought to exactly what a pin says, whatever a build left there.

Nobody works in such a tree, so what differs from the depot is a leftover.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.paths import escape_path
from provisioner.gateways.perforce.reconciling import differences
from provisioner.gateways.perforce.shelving import FILES_PER_COMMAND
from provisioner.gateways.perforce.submitted import DepotView
from provisioner.gateways.perforce.types import Part


def pinned_files(client: str, *, change: int, parts: Sequence[Part]) -> list[str]:
    """Return the file arguments of a pin: everything first, then each part.

    To be used one after the other: a part says otherwise than what came before it.
    """
    everything = f"//{escape_path(client)}/...@{change}"
    return [everything, *(f"{part.path}@{part.change}" for part in parts)]


def local_paths(connection: Connection, each: Callable[[str], None]) -> None:
    """Call `each` with the local path of every file that the client has.

    Source: p4 have.
    """
    connection.run("have", each=lambda record: each(record["path"]), is_bulk=True)


def restore_files(
    connection: Connection, *, client: str, in_batches: bool = False
) -> list[str]:
    """Fetch again what was changed or removed without being opened; return its paths.

    Source: p4 reconcile -n -e -d, p4 sync -f path#have.
    """
    found = differences(connection, client=client, in_batches=in_batches)
    differing = [record["depotFile"] for record in found]
    for start in range(0, len(differing), FILES_PER_COMMAND):
        some = differing[start : start + FILES_PER_COMMAND]
        connection.run("sync", "-f", *(f"{path}#have" for path in some), is_bulk=True)
    return differing


def count_out_of_sync(
    connection: Connection, *, client: str, change: int, parts: Sequence[Part]
) -> int:
    """Return how many files are not at the change of their part, or of the rest.

    Source: p4 sync -n.
    """
    elsewhere = DepotView(
        (f'"{part.path}" "{part.path}"' for part in parts),
        is_case_sensitive=connection.is_case_sensitive,
    )
    everything, *others = pinned_files(client, change=change, parts=parts)
    rest: list[str] = []
    connection.run(
        *("sync", "-n", everything),
        each=lambda record: rest.append(record["depotFile"]),
        is_bulk=True,
    )
    found = {path for path in rest if not elsewhere.touches([path])}
    for one in others:
        connection.run(
            *("sync", "-n", one),
            each=lambda record: found.add(record["depotFile"]),
            is_bulk=True,
        )
    return len(found)
