"""Compare a tree with a snapshot of it, and take back files, as the files' owner.

No link is followed, other filesystems are not entered, and nothing that is there is
overwritten: what differs is renamed first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from provisioner.gateways.errors import NotFound, Refused
from provisioner.gateways.hosts.descent import ENTER, reached
from provisioner.gateways.hosts.transferred_files import copy_files
from provisioner.gateways.owners import HOUR, works_on_files
from provisioner.gateways.snapshot_directories import SNAPSHOTS
from provisioner.lib.storable import as_named, storable

SHOW_EVERY = 100


@dataclass(frozen=True, kw_only=True)
class TreeChanges:
    """What was added, changed and removed since a snapshot.

    Directories end with "/"; what is in an added or removed one is not listed. `counts`
    are of all, by the names of the lists, which are cut. It is incomplete if there was
    too much to look at, or something could not be read.
    """

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    is_complete: bool = True


@dataclass(frozen=True, kw_only=True)
class TakenBack:
    """How many files are as in the snapshot again, and which could not be taken back.

    `kept` has pairs of a path and of the name that its newer content has now, `failed`
    of a path and the reason.
    """

    files: int
    kept: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def __add__(self, other: TakenBack) -> TakenBack:
        return TakenBack(
            files=self.files + other.files,
            kept=[*self.kept, *other.kept],
            failed=[*self.failed, *other.failed],
        )


@works_on_files(within_seconds=4 * HOUR)
def compare_with_snapshot(
    then: Path,
    now: Path,
    *,
    most_named: int,
    most_entries: int,
    on_progress: Callable[[int], None],
) -> TreeChanges:
    """Return what changed below `now` since the snapshot that is seen at `then`.

    A file has changed if its kind, size or time of modification has; modes do
    not count, as p4 changes them. `on_progress` gets the number of entries seen.

    Raises: NotFound (the snapshot is not seen there); OSError.
    """
    comparing = _Comparing(most_named=most_named, most_entries=most_entries)
    with opened_root(then) as earlier, opened_root(now) as current:
        return comparing.run(earlier, current, on_progress)


@works_on_files(within_seconds=4 * HOUR)
def take_back(
    then: Path,
    now: Path,
    path: str,
    *,
    label: str,
    most_files: int,
    on_progress: Callable[[int], None],
) -> TakenBack:
    """Copy a file, or all files of a directory, from a snapshot into the tree again.

    `path` was checked by `inner_path`; its names are storable, like those of the
    result. What differs there is renamed to its name with `label` at the end. Nothing
    is copied if there are more than `most_files`. Safe to repeat with the same label.

    Raises: NotFound (the snapshot is not seen, or has nothing at this path); Refused
    (too many files); OSError.
    """
    path = as_named(path)
    with opened_root(then) as root:
        paths = list(itertools.islice(_files_at(root, path), most_files + 1))
    if len(paths) > most_files:
        raise Refused(
            f"{storable(path)} has more than {most_files:,} files. Take back its "
            "subdirectories, or clone the workspace as of the snapshot.",
            system="host",
            operation="take back",
        )
    outcome = copy_files(
        then, now, paths, label=label, replaces=True, on_progress=on_progress
    )
    return TakenBack(
        files=len(paths) - len(outcome.failed),
        kept=[(storable(one), storable(other)) for one, other in outcome.kept_aside],
        failed=[(storable(one), reason) for one, reason in outcome.failed],
    )


@contextlib.contextmanager
def opened_root(root: Path) -> Iterator[int]:
    """Open the root of a tree for the block.

    Raises: NotFound.
    """
    try:
        fd = os.open(root, ENTER)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(
            "The snapshot is not seen in the workspace. ONTAP may have deleted it. If "
            "its site has just begun to show .snapshot, try again in five minutes.",
            system="host",
            operation="open snapshot",
        ) from error
    try:
        yield fd
    finally:
        os.close(fd)


Entries = dict[str, os.stat_result]


def entries_of(root_fd: int, way: list[str]) -> Entries:
    """Return what is in a directory and on its filesystem, without .snapshot.

    Raises: OSError.
    """
    device = os.fstat(root_fd).st_dev
    with reached(root_fd, way) as fd, os.scandir(fd) as entries:
        found = {
            entry.name: entry.stat(follow_symlinks=False)
            for entry in entries
            if entry.name != SNAPSHOTS
        }
    return {name: status for name, status in found.items() if status.st_dev == device}


def _files_at(root_fd: int, path: str) -> Iterator[str]:
    """Yield the path, or those of everything but directories below it.

    Raises: NotFound.
    """
    *above, name = path.split("/")
    try:
        status = entries_of(root_fd, above)[name]
    except (KeyError, OSError) as error:
        raise NotFound(
            f"The snapshot has nothing at {storable(path)} that is reached without "
            "links.",
            system="host",
            operation="find file",
        ) from error
    if not stat.S_ISDIR(status.st_mode):
        yield path
        return
    waiting = [path.split("/")]
    while waiting:
        way = waiting.pop()
        try:
            entries = sorted(entries_of(root_fd, way).items())
        except OSError:  # it may not be read, which its copy will say
            yield "/".join(way)
            continue
        for name, status in entries:
            if stat.S_ISDIR(status.st_mode):
                waiting.append([*way, name])
            else:
                yield "/".join([*way, name])


class _Comparing:
    """Walks two trees side by side."""

    def __init__(self, *, most_named: int, most_entries: int) -> None:
        self._most_named = most_named
        self._most_entries = most_entries
        self._found = TreeChanges(counts={"added": 0, "changed": 0, "removed": 0})
        self._seen = 0
        self._unread = 0

    def run(
        self, earlier: int, current: int, on_progress: Callable[[int], None]
    ) -> TreeChanges:
        waiting: list[list[str]] = [[]]
        for number in itertools.count():
            if not waiting or self._seen >= self._most_entries:
                break
            way = waiting.pop()
            try:
                before, after = entries_of(earlier, way), entries_of(current, way)
            except OSError:  # it may not be read, or it was moved
                self._unread += 1
                continue
            self._seen += len(before) + len(after)
            if number % SHOW_EVERY == 0:
                on_progress(self._seen)
            waiting += [[*way, name] for name in self._compare(way, before, after)]
        return dataclasses.replace(
            self._found, is_complete=not waiting and not self._unread
        )

    def _compare(self, way: list[str], before: Entries, after: Entries) -> list[str]:
        """Note what differs in a directory; return the directories that both have."""
        both = []
        for name in sorted(before.keys() | after.keys()):
            old, new = before.get(name), after.get(name)
            if old is None:
                self._note("added", way, name, new)
            elif new is None:
                self._note("removed", way, name, old)
            elif stat.S_ISDIR(old.st_mode) and stat.S_ISDIR(new.st_mode):
                both.append(name)
            elif _key(old) != _key(new):
                self._note("changed", way, name, new)
        return both

    def _note(
        self, what: str, way: list[str], name: str, status: os.stat_result | None
    ) -> None:
        self._found.counts[what] += 1
        named: list[str] = getattr(self._found, what)
        if len(named) < self._most_named:
            is_directory = status is not None and stat.S_ISDIR(status.st_mode)
            named.append(storable("/".join([*way, name])) + "/" * is_directory)


def _key(status: os.stat_result) -> tuple[int, int, int]:
    return stat.S_IFMT(status.st_mode), status.st_size, status.st_mtime_ns
