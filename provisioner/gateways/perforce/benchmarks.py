"""`gateway.benchmarks`: work that measures a server, for servers made to be used up.

What is measured lies below one directory, made of a seed: leaves of seventy files each,
as in the public reference01 data set of the vendor, whose `//depot/main/0...` has
70,000 of them.

Source: docs of the browse and branchsubmit benchmarks (tools/benchmarks at
ftp.perforce.com); the data set in "3 Ways to Improve Performance from a Storage
Perspective" (Gupta, Brazil).
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from provisioner.gateways.fence import require_leave
from provisioner.gateways.owners import HOUR, works_on_files
from provisioner.gateways.perforce.clients import Clients
from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.facet import Facet
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.types import ClientSpec

FILES_OF_A_LEAF = 70
_FILES_OF_A_CHANGE = 7_000
_LEAF = "most/sites/have/longer/paths/jam/src"
_DESCRIPTION = "Cloneyard measures this server with it."
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LINE = 64


@dataclass(frozen=True, kw_only=True)
class Branched:
    """A branch that was submitted: what each of its commands took, in seconds."""

    change: int
    files: int
    integrate_seconds: float
    edit_seconds: float
    submit_seconds: float


@dataclass(frozen=True, kw_only=True)
class Browsed:
    """What one child did: until when, and where it came to. Times are of the host."""

    began: float
    ended: float
    browses: int
    paths: list[str]


@dataclass(frozen=True, kw_only=True)
class Synced:
    """What one child got. Times are of the host."""

    began: float
    ended: float
    files: int
    bytes: int


def leaves_of(files: int) -> Iterator[tuple[str, int]]:
    """Yield each leaf of a data set below its top, with its number of files."""
    for number, first in enumerate(range(0, files, FILES_OF_A_LEAF)):
        leaf = f"main/{number // 100:02d}/{number % 100:02d}/{_LEAF}"
        yield leaf, min(FILES_OF_A_LEAF, files - first)


def content_of(path: str, *, seed: int, size: int) -> str:
    """Return the text of a file: `size` bytes that depend on seed and path alone."""
    chance = random.Random(f"{seed}/{path}")
    text = "".join(chance.choices(_LETTERS, k=size))
    lines = [text[at : at + _LINE - 1] for at in range(0, size, _LINE)]
    return "\n".join(lines)[: size - 1] + "\n"


class Benchmarks(Facet):
    """Work that takes all that a server has. Never at one that people work with."""

    def count(self, top: str) -> int:
        """Return how many files there are below a depot path.

        Source: p4 sizes -s.
        """
        with self._connected() as connection:
            asked = ("sizes", "-s", f"{top}/...")
            records = connection.run(*asked, is_bulk=True).records
        return sum(int(record.get("fileCount", 0)) for record in records)

    def log_end(self) -> int:
        """Return how many bytes the server's log has.

        Raises: NotPermitted.
        Source: p4 logtail, whose last record has the offset.
        """
        with self._connected() as connection:
            records = connection.run("logtail", "-b", "1").records
        return max((int(record.get("offset", 0)) for record in records), default=0)

    def set(self, name: str, value: str) -> None:
        """Set a configurable. Source: p4 configure set."""
        require_leave()
        with self._connected() as connection:
            connection.run("configure", "set", f"{name}={value}")

    def define(self, client: str, *, top: str) -> None:
        """Define a client that only previews a tree. Source: p4 client -i."""
        require_leave()
        with self._connected() as connection:
            self._define(connection, client, top=top, root=f"/nowhere/{client}")

    def delete_client(self, name: str) -> None:
        """Delete a client that was measured with, and what it has opened.

        Source: p4 client -f -d.
        """
        require_leave()
        with self._connected() as connection:
            if Clients.on(connection).find(name) is not None:
                connection.run("client", "-f", "-d", name)

    def lock(self, client: str, *, top: str) -> float:
        """Lock every file of a tree, opened for edit; return the seconds of the lock.

        Nothing stays locked or opened. No file of the client is touched.

        Source: p4 edit -k, p4 lock, p4 revert -k.
        """
        require_leave()
        with self._connected(client) as connection:
            self._define(connection, client, top=top, root=f"/nowhere/{client}")
            connection.run("sync", "-k", each=_ignore, is_bulk=True)
            connection.run("edit", "-k", f"{top}/...", each=_ignore, is_bulk=True)
            began = time.monotonic()
            connection.run("lock", f"{top}/...", each=_ignore, is_bulk=True)
            seconds = time.monotonic() - began
            connection.run("revert", "-k", "//...", each=_ignore, is_bulk=True)
        return seconds

    @works_on_files(within_seconds=24 * HOUR)
    def add(
        self,
        client: str,
        *,
        top: str,
        root: str,
        files: int,
        size: int,
        seed: int,
        on_progress: Callable[[int], None],
    ) -> int:
        """Submit a data set below a depot path; return its files. Local files.

        Nothing of what is there already is submitted again, so it is safe to repeat.

        Source: p4 add, p4 submit.
        """
        with self._connected(client) as connection:
            self._define(connection, client, top=top, root=root)
            connection.run("revert", "-k", "//...")
            connection.run("sync", "-k", f"//{client}/...", is_bulk=True)
            known = _paths(connection, f"{top}/main/...")
            made, batch = len(known), list[str]()
            for leaf, number in leaves_of(files):
                for name in (f"{leaf}/file{each:02d}.c" for each in range(number)):
                    if f"{top}/{name}" in known:
                        continue
                    place = Path(root, name)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_text(content_of(name, seed=seed, size=size))
                    batch.append(str(place))
                if len(batch) >= _FILES_OF_A_CHANGE:
                    made += _submitted(connection, batch)
                    batch = []
                    on_progress(made)
            made += _submitted(connection, batch)
            on_progress(made)
        shutil.rmtree(root, ignore_errors=True)
        return made

    @works_on_files(within_seconds=24 * HOUR)
    def branch(
        self,
        client: str,
        *,
        root: str,
        source: str,
        target: str,
        edits: bool,
    ) -> Branched:
        """Branch a tree and submit it. Local files, if it `edits` them.

        `integrate -v` leaves the files at the server; with `edits` the client gets
        them, opens them for edit and sends them.

        Source: p4 integrate -v, p4 edit, p4 submit; "branchsubmit-edit" is
        integrate, edit, submit.
        """
        with self._connected(client) as connection:
            self._define(connection, client, top=target, root=root)
            virtual = () if edits else ("-v",)
            began = time.monotonic()
            opened = list[str]()
            connection.run(
                *("integrate", *virtual, f"{source}/...", f"{target}/..."),
                each=lambda record: opened.append(record["depotFile"]),
                is_bulk=True,
            )
            integrated = time.monotonic()
            if edits:
                connection.run("edit", f"{target}/...", each=_ignore, is_bulk=True)
            edited = time.monotonic()
            records = connection.run("submit", "-d", _DESCRIPTION, is_bulk=True).records
            submitted = time.monotonic()
        numbers = [int(r["submittedChange"]) for r in records if "submittedChange" in r]
        return Branched(
            change=max(numbers, default=0),
            files=len(opened),
            integrate_seconds=integrated - began,
            edit_seconds=edited - integrated,
            submit_seconds=submitted - edited,
        )

    @works_on_files(within_seconds=24 * HOUR)
    def browse(self, client: str, *, top: str, browses: int, seed: int) -> Browsed:
        """Drill down random paths from a depot path, without a pause.

        At each level `dirs` and `fstat` of what is in the directory; where it has no
        directories `files`, and `filelog` of one of them.

        Source: "drills down random paths" with dirs, fstat and filelog in the docs of
        the browse benchmark. What it asks at which level they do not say.
        """
        chance = random.Random(seed)
        began, paths = time.time(), list[str]()
        with self._connected(client) as connection:
            for _ in range(browses):
                place = top
                while below := _told(connection, "dirs", place, name="dir"):
                    _told(connection, "fstat", place, name="depotFile")
                    place = chance.choice(below)
                found = _told(connection, "files", place, name="depotFile")
                if found:
                    path = chance.choice(found)
                    connection.run("filelog", path)
                    paths.append(path)
        return Browsed(began=began, ended=time.time(), browses=browses, paths=paths)

    @works_on_files(within_seconds=24 * HOUR)
    def sync(self, client: str, *, top: str, root: str) -> Synced:
        """Sync a tree into an empty client. Local files, which it removes afterwards.

        Source: p4 sync.
        """
        with self._connected(client) as connection:
            self._define(connection, client, top=top, root=root)
            connection.run("sync", "-k", f"//{client}/...#0", is_bulk=True)
            began, sizes = time.time(), list[int]()
            connection.run(
                *("sync", f"//{client}/..."),
                each=lambda record: sizes.append(int(record.get("fileSize", 0))),
                is_bulk=True,
            )
            ended = time.time()
        shutil.rmtree(root, ignore_errors=True)
        return Synced(began=began, ended=ended, files=len(sizes), bytes=sum(sizes))

    def _define(
        self, connection: Connection, client: str, *, top: str, root: str
    ) -> None:
        Clients.on(connection).save(
            ClientSpec(
                name=client,
                owner=self.account.user,
                root=root,
                description=_DESCRIPTION,
                view=(f"{top}/... //{client}/...",),
            )
        )


def _told(connection: Connection, command: str, place: str, *, name: str) -> list[str]:
    records = connection.run(command, f"{place}/*").records
    return [str(record[name]) for record in records if name in record]


def _paths(connection: Connection, files: str) -> set[str]:
    found = set[str]()
    connection.run(
        "files", "-e", files, each=lambda r: found.add(r["depotFile"]), is_bulk=True
    )
    return found


def _submitted(connection: Connection, files: Sequence[str]) -> int:
    """Add and submit files; return how many."""
    require_leave()
    if not files:
        return 0
    for first in range(0, len(files), 500):
        some = files[first : first + 500]
        connection.run("add", "-t", "text", *some, is_bulk=True)
    connection.run("submit", "-d", _DESCRIPTION, is_bulk=True)
    return len(files)


def _ignore(record: Record) -> None:
    """Throw a row away."""
