"""Sync a client's files to a submitted change."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import chain

from provisioner.gateways.errors import Refused
from provisioner.gateways.owners import HOUR, works_on_files
from provisioner.gateways.perforce.batching import (
    Batches,
    batches,
    batches_of,
    with_rests,
)
from provisioner.gateways.perforce.changes.submitted import SubmittedChanges
from provisioner.gateways.perforce.connection import Connection, Reply
from provisioner.gateways.perforce.errors import CANT_CLOBBER, LEFT_BEHIND_BY_SYNC
from provisioner.gateways.perforce.facet import Facet
from provisioner.gateways.perforce.files.progress import SyncCounter
from provisioner.gateways.perforce.locking import lock_use
from provisioner.gateways.perforce.paths import escape_path, pinned_files
from provisioner.gateways.perforce.types import (
    LockUse,
    Part,
    SyncProgress,
    SyncReport,
    TreeSize,
)


class Syncing(Facet):
    """Bring files to a submitted change, with the have list."""

    def tree_size(self, client: str, *, change: int) -> TreeSize:
        """Return number and bytes of the files in the client's view at a change.

        Raises: NotFound (client or change).
        Source: p4 sizes -s //client/...@change.
        """
        with self._connected(client) as connection:
            SubmittedChanges.on(connection).require_submitted(change)
            records = connection.run(
                "sizes", "-s", f"//{escape_path(client)}/...@{change}", is_bulk=True
            ).records
        return TreeSize(
            files=sum(int(record.get("fileCount", 0)) for record in records),
            bytes=sum(int(record.get("fileSize", 0)) for record in records),
        )

    @works_on_files(within_seconds=12 * HOUR)
    def sync(
        self,
        client: str,
        *,
        change: int,
        on_progress: Callable[[SyncProgress], None],
        replace_leftovers: bool = False,
        parts: Sequence[Part] = (),
        in_batches: bool = False,
        expected: TreeSize | None = None,
        on_command: Callable[[LockUse | None], bool] | None = None,
    ) -> SyncReport:
        """Bring the client's files to exactly this submitted change. Local files.

        Then each of the `parts` to its change, in order. `in_batches` syncs one
        directory after another, with pauses in which others get the server's locks.
        A last command for everything then gets what those directories lack, such as
        deletions, so the have list is the same. `expected` is the total for the
        progress in batches, unknown otherwise until the last command. `on_command` is
        as in FlushWatch.

        Safe to repeat after an interruption: what the server knows to have arrived is
        not sent again. A sync that was killed can leave a half-written file, which the
        next one takes for somebody's work and refuses. `replace_leftovers` fetches such
        files again. It overwrites every file that is not on the have list but in the
        way of one that should be: use it for trees that nobody works in, like those of
        templates.

        Raises: NotFound (client or change), Refused (files that could not be written or
        are opened; the sentence names up to ten).
        Source: p4 sync //client/...@change, with --parallel if the account allows it.
        Without -q, as each file's record is counted.
        """
        threads = self.account.sync_connections
        parallel = (f"--parallel=threads={threads}",) if threads else ()
        with self._connected(client, tracks=on_command is not None) as connection:
            SubmittedChanges.on(connection).require_submitted(change)
            progress = SyncCounter(on_progress, expected=expected)
            began = time.monotonic()
            progress.report()
            for_everything: list[Sequence[str]] = [
                [one] for one in pinned_files(client, change=change, parts=parts)
            ]
            shares = Batches(
                batches_of(connection, client=client, change=change)
                if in_batches
                else []
            )
            for files in with_rests(chain(shares, for_everything)):
                progress.is_last_command = files is for_everything[-1]
                reply = connection.run(
                    *("sync", *parallel, *files),
                    each=progress.count,
                    is_bulk=True,
                    accepted={CANT_CLOBBER} if replace_leftovers else (),
                )
                use = lock_use("sync", connection.tracked) if on_command else None
                if replace_leftovers:
                    _replace_leftovers(connection, reply, at=files[0])
                if reply.texts:
                    _refuse_files_left_behind(connection, files)
                if on_command:
                    shares.adapt(others_wait=on_command(use))
            progress.end()
            return SyncReport(
                files=progress.files,
                bytes=progress.bytes,
                seconds=time.monotonic() - began,
            )


def _refuse_files_left_behind(connection: Connection, files: Sequence[str]) -> None:
    """Ask once more for remarks: those read one record at a time have no numbers."""
    connection.run(
        *("sync", "-n", *files), is_bulk=True, also_failures=LEFT_BEHIND_BY_SYNC
    )


def _replace_leftovers(connection: Connection, reply: Reply, *, at: str) -> None:
    """Fetch again the files that a killed sync had begun to write.

    The client writes a new file in place and makes it read-only at the end. Killed in
    between, it leaves a writable file, which the next sync will not touch. A writable
    file on the have list is another matter: somebody changed it.
    """
    refused = [message.file for message in reply.messages if message.id == CANT_CLOBBER]
    for paths in batches(refused):
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
