"""Find cheaply when somebody last changed something in a tree.

Directories first, from the top: creating, removing or renaming an entry changes the
time of its directory. The rest of the budget goes to files, beginning with those of the
most recently changed directories. It stops after a number of entries or seconds, and
reports how far it got.

It only reads times, through directory descriptors, on one filesystem and through no
link. So nothing that the owner does to the tree meanwhile can lead it elsewhere.
"""

from __future__ import annotations

import datetime as dt
import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from provisioner.gateways.errors import Unreachable
from provisioner.gateways.hosts.descent import ENTER, reached
from provisioner.gateways.snapshot_directories import SNAPSHOTS

MOST_ENTRIES = 50_000
MOST_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Recency:
    """The newest modification found, and how much was examined for it."""

    newest_at: dt.datetime | None
    newest_path: str
    directories: int
    files: int
    is_complete: bool


@dataclass
class _Walk:
    root_fd: int
    most_entries: int
    ends: float
    newest: float = float("-inf")
    newest_path: str = ""
    directories: int = 0
    files: int = 0
    is_cut: bool = False
    found: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)

    def is_over(self) -> bool:
        if self.directories + self.files < self.most_entries and (
            time.monotonic() < self.ends
        ):
            return False
        self.is_cut = True
        return True

    def note(self, modified: float, path: tuple[str, ...]) -> None:
        if modified > self.newest:
            self.newest, self.newest_path = modified, "/".join(path) or "."


def newest_modification(
    root: Path,
    *,
    most_entries: int = MOST_ENTRIES,
    most_seconds: float = MOST_SECONDS,
) -> Recency:
    """Return when the tree was last changed, as far as the budget reaches.

    Raises: Unreachable (the root cannot be opened).
    """
    ends = time.monotonic() + most_seconds
    try:
        root_fd = os.open(root, ENTER)
    except OSError as error:
        raise Unreachable(
            f"{root} cannot be read: {error.strerror}.",
            system="host",
            operation="newest_modification",
        ) from error
    try:
        walk = _Walk(root_fd=root_fd, most_entries=most_entries, ends=ends)
        _check_directories(walk)
        _check_files(walk)
    finally:
        os.close(root_fd)
    seen = walk.newest > float("-inf")
    return Recency(
        newest_at=dt.datetime.fromtimestamp(walk.newest, tz=dt.UTC) if seen else None,
        newest_path=walk.newest_path,
        directories=walk.directories,
        files=walk.files,
        is_complete=not walk.is_cut,
    )


def _check_directories(walk: _Walk) -> None:
    """Record each directory's time, from the top down."""
    device = os.fstat(walk.root_fd).st_dev
    waiting: deque[tuple[str, ...]] = deque([()])
    while waiting and not walk.is_over():
        parts = waiting.popleft()
        try:
            with reached(walk.root_fd, parts) as fd:
                about = os.fstat(fd)
                if about.st_dev != device:
                    continue
                walk.directories += 1
                walk.note(about.st_mtime, parts)
                walk.found.append((about.st_mtime, parts))
                waiting.extend(_below(fd, parts))
        except OSError:
            walk.is_cut = True  # not readable for us, or already gone


def _below(fd: int, parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    with os.scandir(fd) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and entry.name != SNAPSHOTS:
                yield (*parts, entry.name)


def _check_files(walk: _Walk) -> None:
    """Record times of files, beginning with the directories changed last."""
    for _, parts in sorted(walk.found, reverse=True):
        if walk.is_over():
            return
        try:
            with reached(walk.root_fd, parts) as fd:
                _check_files_in(walk, fd, parts)
        except OSError:
            walk.is_cut = True


def _check_files_in(walk: _Walk, fd: int, parts: tuple[str, ...]) -> None:
    with os.scandir(fd) as entries:
        for entry in entries:
            if walk.is_over():
                return
            about = entry.stat(follow_symlinks=False)
            if not stat.S_ISDIR(about.st_mode):
                walk.files += 1
                walk.note(about.st_mtime, (*parts, entry.name))
