"""The have list: the revisions a server believes a client has. No file moves here."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

from provisioner.gateways.perforce import meter
from provisioner.gateways.perforce.batching import (
    FILES_PER_COMMAND,
    Batches,
    batches,
    batches_of,
    with_rests,
)
from provisioner.gateways.perforce.changes.pending import PendingChanges
from provisioner.gateways.perforce.changes.submitted import SubmittedChanges
from provisioner.gateways.perforce.depot_view import DepotView
from provisioner.gateways.perforce.errors import LEFT_BEHIND_BY_SYNC
from provisioner.gateways.perforce.facet import Facet
from provisioner.gateways.perforce.locking import lock_use
from provisioner.gateways.perforce.paths import pinned_files
from provisioner.gateways.perforce.types import (
    FlushPlace,
    FlushWatch,
    HaveList,
    Part,
)


class HaveLists(Facet):
    """The have list of each client."""

    def flush(
        self,
        client: str,
        *,
        change: int,
        parts: Sequence[Part] = (),
        in_batches: bool = False,
        watch: FlushWatch | None = None,
    ) -> None:
        """Set the have list to everything in the client's view at the change.

        Then to the change of each of the `parts`, in order. No file moves. Safe to
        repeat. The client must be unlocked and bound to no host.

        `in_batches` is for many files: it flushes one directory of the change after
        another, with pauses of random length in which others get the server's locks.
        Entries outside those directories stay. Parts are always flushed.

        Raises: NotFound (client or change), Refused (limits, locked, host, opened
        files, which keep their revision).
        Source: p4 sync -k -q //client/...@change.
        """
        with self._connected(client, tracks=watch is not None) as connection:
            SubmittedChanges.on(connection).require_submitted(change)
            everything, *others = pinned_files(client, change=change, parts=parts)
            paths = [everything]
            if in_batches:
                paths = batches_of(connection, client=client, change=change)
            of = _digest_of(paths)
            place = watch.place if watch else None
            done = place.done if place and place.of == of else 0
            shares = Batches(paths[done:])
            for files in with_rests(chain(shares, ([one] for one in others))):
                connection.run(
                    *("sync", "-k", "-q", *files),
                    is_bulk=True,
                    also_failures=LEFT_BEHIND_BY_SYNC,
                )
                done = min(done + len(files), len(paths))
                if watch:
                    watch.on_place(FlushPlace(of=of, done=done, total=len(paths)))
                    use = lock_use("sync -k", connection.tracked)
                    shares.adapt(others_wait=watch.on_command(use))

    def flush_towards(
        self,
        client: str,
        *,
        change: int,
        parts: Sequence[Part] = (),
        wanted: HaveList,
        in_batches: bool = False,
        watch: FlushWatch | None = None,
    ) -> HaveList:
        """Flush unless the have list is the wanted one; return what it then is.

        In batches first, if so asked, from where an earlier attempt ended. If that does
        not lead there, as somebody changed the have list since, in all batches. If that
        does not, because the view is not made of directories or the client has files
        that the change lacks, everything is flushed at once. Safe to repeat. The rest
        is as in `flush`.

        Raises: as `flush`.
        """
        with self._connected(client, tracks=watch is not None) as connection:
            here = HaveLists.on(connection)
            have = here.have_list(client)
            for as_batches, watched in _tries(watch, in_batches=in_batches):
                if have != wanted:
                    here.flush(
                        client,
                        change=change,
                        parts=parts,
                        in_batches=as_batches,
                        watch=watched,
                    )
                    have = here.have_list(client)
                    meter.count(self.account.port, flushed_files=have.count)
        return have

    def flush_to(self, client: str, revisions: Iterable[tuple[str, int]]) -> None:
        """Set single entries of the have list: depot path and revision, 0 for none.

        For the few files that differ from the change the client was flushed to; see
        `have_differences`. No file moves. Safe to repeat.

        Raises: NotFound (client), Refused (as `flush`).
        Source: p4 sync -k -q path#revision.
        """
        rows = iter(revisions)
        with self._connected(client) as connection:
            while some := list(islice(rows, FILES_PER_COMMAND)):
                connection.run(
                    *(
                        "sync",
                        "-k",
                        "-q",
                        *(f"{path}#{number}" for path, number in some),
                    ),
                    is_bulk=True,
                )

    def have_list(self, client: str) -> HaveList:
        """Return count and digest of the client's have list.

        Raises: NotFound (client), Refused (bound to another host).
        Source: p4 have.
        """
        digest = HaveDigest()
        with self._connected(client) as connection:
            connection.run(
                "have",
                each=lambda record: digest.add(
                    record["depotFile"], revision=record["haveRev"]
                ),
                is_bulk=True,
            )
        return digest.result()

    def have_differences(
        self, client: str, *, change: int, parts: Sequence[Part] = ()
    ) -> list[tuple[str, int]]:
        """Return the entries of the have list that a flush to the pin would change.

        As depot path and revision, 0 where the client does not have the file. Opened
        files are always included. After a flush of the same view to the same change
        and parts, `flush_to` with these rows restores the have list.

        Raises: NotFound (client or change), Refused (bound to another host).
        Source: p4 sync -n //client/...@change, p4 opened, p4 have.
        """
        differences: list[tuple[str, int]] = []
        with self._connected(client) as connection:
            SubmittedChanges.on(connection).require_submitted(change)
            opened = PendingChanges.on(connection).list_opened(client)
            paths = {file.depot_file for file in opened}
            for files in pinned_files(client, change=change, parts=parts):
                connection.run(
                    *("sync", "-n", files),
                    each=lambda record: paths.add(record["depotFile"]),
                    is_bulk=True,
                )
            for some in batches(sorted(paths)):
                had = {
                    record["depotFile"]: int(record["haveRev"])
                    for record in connection.run("have", *some, is_bulk=True).records
                }
                differences += [(path, had.get(path, 0)) for path in some]
        return differences

    def count_out_of_sync(
        self, client: str, *, change: int, parts: Sequence[Part] = ()
    ) -> int:
        """Return how many files are not at the change, or at that of their part.

        Compares the have list only, so it may run on any host.

        Raises: NotFound (client or change).
        Source: p4 sync -n //client/...@change.
        """
        with self._connected(client) as connection:
            SubmittedChanges.on(connection).require_submitted(change)
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

    def local_paths(self, client: str, each: Callable[[str], None]) -> None:
        """Call `each` with the local path of every file that the client has.

        Raises: NotFound (client), Refused (bound to another host).
        Source: p4 have.
        """
        with self._connected(client) as connection:
            connection.run(
                "have", each=lambda record: each(record["path"]), is_bulk=True
            )


def _tries(
    watch: FlushWatch | None, *, in_batches: bool
) -> Iterator[tuple[bool, FlushWatch | None]]:
    """Yield ways to flush, the kindest to others first: whether in batches, and how."""
    from_the_first = dataclasses.replace(watch, place=None) if watch else None
    if in_batches:
        yield True, watch
        if watch and watch.place:
            yield True, from_the_first
    yield False, from_the_first


def _digest_of(paths: Iterable[str]) -> str:
    lines = (f"{path}\n".encode("utf-8", "surrogateescape") for path in paths)
    return hashlib.sha256(b"".join(lines)).hexdigest()


class HaveDigest:
    """Count and digest of a have list, fed one row at a time in any order.

    Each row takes its text and about 40 bytes until the end.
    """

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def add(self, depot_file: str, *, revision: str) -> None:
        self._lines.append(have_line(depot_file, revision=revision))

    def result(self) -> HaveList:
        return have_list_of(self._lines)


def have_line(depot_file: str, *, revision: str) -> bytes:
    """Return a row of a have list as its digest has it."""
    return f"{depot_file}#{revision}\n".encode("utf-8", "surrogateescape")


def have_list_of(lines: Sequence[bytes]) -> HaveList:
    """Return count and digest of rows in any order.

    They are sorted by the bytes of their names: a case-insensitive server sends them in
    another order.
    """
    digest = hashlib.sha256()
    for line in sorted(lines):
        digest.update(line)
    return HaveList(count=len(lines), digest=digest.hexdigest())
