"""Bringing a client's files to a change: at once, or directory by directory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from provisioner.gateways.errors import Refused
from provisioner.gateways.perforce.batching import batches_of, shared_out, with_rests
from provisioner.gateways.perforce.connection import Connection, Reply
from provisioner.gateways.perforce.errors import CANT_CLOBBER, LEFT_BEHIND_BY_SYNC
from provisioner.gateways.perforce.generations import pinned_files
from provisioner.gateways.perforce.locking import lock_use
from provisioner.gateways.perforce.paths import escape_path
from provisioner.gateways.perforce.progress import SyncCounter
from provisioner.gateways.perforce.shelving import FILES_PER_COMMAND
from provisioner.gateways.perforce.types import LockUse, Part, SyncReport, TreeSize


def sync(
    connection: Connection,
    *,
    client: str,
    change: int,
    parts: Sequence[Part],
    threads: int,
    replace_leftovers: bool,
    in_batches: bool,
    progress: SyncCounter,
    on_command: Callable[[LockUse], None] | None,
) -> SyncReport:
    """Keep the contract of PerforceGateway.sync.

    What the directories of the change do not have, because they are gone by then or
    the view maps them no longer, comes with the command for everything after them: so
    the have list is the same, and a sync that broke off goes on where it was.

    Source: p4 sync, with --parallel where several connections may be used.
    """
    began = time.monotonic()
    progress.report()
    parallel = (f"--parallel=threads={threads}",) if threads else ()
    commands: list[Sequence[str]] = [
        [one] for one in pinned_files(client, change=change, parts=parts)
    ]
    if in_batches:
        paths = batches_of(connection, client=client, change=change)
        commands = [*shared_out(paths), *commands]
    for number, files in enumerate(with_rests(commands), start=1):
        progress.is_last_command = number == len(commands)
        reply = connection.run(
            *("sync", *parallel, *files),
            each=progress.count,
            is_bulk=True,
            accepted={CANT_CLOBBER} if replace_leftovers else (),
        )
        use = lock_use("sync", connection.tracked) if on_command else None
        if on_command and use:
            on_command(use)
        if replace_leftovers:
            _replace_leftovers(connection, reply, at=files[0])
        if reply.texts:
            _refuse_files_left_behind(connection, files)
    progress.end()
    return SyncReport(
        files=progress.files,
        bytes=progress.bytes,
        seconds=time.monotonic() - began,
    )


def tree_size(connection: Connection, *, client: str, change: int) -> TreeSize:
    """Return what a client's view has at a change.

    Source: p4 sizes -s.
    """
    records = connection.run(
        "sizes", "-s", f"//{escape_path(client)}/...@{change}", is_bulk=True
    ).records
    return TreeSize(
        files=sum(int(record.get("fileCount", 0)) for record in records),
        bytes=sum(int(record.get("fileSize", 0)) for record in records),
    )


def _refuse_files_left_behind(connection: Connection, files: Sequence[str]) -> None:
    """Ask again what a sync remarked on: taken one by one, remarks have no numbers."""
    connection.run(
        *("sync", "-n", *files), is_bulk=True, also_failures=LEFT_BEHIND_BY_SYNC
    )


def _replace_leftovers(connection: Connection, reply: Reply, *, at: str) -> None:
    """Fetch again what a sync that was killed had begun to write.

    The client writes a new file in place and makes it read-only at the end; killed in
    between, it leaves a writable one that the next sync will not touch. A file that
    the client has is another matter: somebody changed it.
    """
    refused = [message.file for message in reply.messages if message.id == CANT_CLOBBER]
    for start in range(0, len(refused), FILES_PER_COMMAND):
        paths = refused[start : start + FILES_PER_COMMAND]
        had = connection.run("have", *map(escape_path, paths)).records
        if had:
            names = ", ".join(sorted(record["path"] for record in had)[:10])
            raise Refused(
                f"These files were changed without being opened in Perforce: {names}",
                system="perforce",
                operation="sync",
                remote_code=str(CANT_CLOBBER),
            )
        revision = at.rpartition("@")[2]
        wanted = [f"{escape_path(path)}@{revision}" for path in paths]
        connection.run("sync", "-f", *wanted, is_bulk=True)
