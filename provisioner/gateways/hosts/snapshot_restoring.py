"""Make a tree what it was in a snapshot, as the files' owner.

No link is followed, and other filesystems are neither entered nor changed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from provisioner.gateways.hosts.descent import reached
from provisioner.gateways.hosts.rescues.reading import CannotCheck, Found, Tree
from provisioner.gateways.hosts.snapshot_files import entries_of, opened_root
from provisioner.gateways.hosts.transferred_files import temporary_name, write_copy
from provisioner.gateways.owners import HOUR, works_on_files
from provisioner.lib.storable import storable

SHOW_EVERY = 100
MOST_FAILED = 500

Way = list[str]
"""The names that lead from the root to a directory."""


@dataclass(frozen=True, kw_only=True)
class RestoredTree:
    """How many entries were copied and removed, and how many could not be.

    Of a directory that was removed, what was in it counts as well. `failed` has pairs
    of path and reason, MOST_FAILED at most, and `reasons` each reason once.
    """

    copied: int
    removed: int
    failed_count: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    reasons: set[str] = field(default_factory=set)


@works_on_files(within_seconds=12 * HOUR)
def restore_tree(
    then: Path, now: Path, *, on_progress: Callable[[int], None]
) -> RestoredTree:
    """Make everything below `now` what the snapshot has that is seen at `then`.

    Files whose kind, mode, size and time of modification are the same stay. Others are
    replaced at once, each by itself; hard links become files of their own. Safe to
    repeat and to kill at any point. `on_progress` gets the number of entries seen.

    Raises: NotFound (the snapshot is not seen there, or no longer); OSError (the root).
    """
    with opened_root(then) as earlier, opened_root(now) as current, Tree.at(then) as t:
        found = _Restoring(earlier, current, t).run(on_progress)
    if found.failed_count:
        with opened_root(then):  # or ONTAP deleted it meanwhile
            pass
    return found


class _Restoring:
    def __init__(self, earlier: int, current: int, tree: Tree) -> None:
        self._earlier = earlier
        self._current = current
        self._tree = tree
        self._device = os.fstat(current).st_dev
        self._modes: list[tuple[Way, int]] = []
        self._copied = 0
        self._removed = 0
        self._failed: list[tuple[str, str]] = []
        self._failed_count = 0
        self._reasons: set[str] = set()

    def run(self, on_progress: Callable[[int], None]) -> RestoredTree:
        waiting: list[Way] = [[]]
        seen = passed = 0
        while waiting:
            way = waiting.pop()
            with self._noted(way), self._reached(way) as directory:
                before = entries_of(self._earlier, way)
                seen += len(before)
                waiting += self._restore(way, directory, before)
            if passed % SHOW_EVERY == 0:
                on_progress(seen)
            passed += 1
        for way, mode in reversed(self._modes):
            with self._noted(way), self._reached(way) as directory:
                os.fchmod(directory, mode)
        return RestoredTree(
            copied=self._copied,
            removed=self._removed,
            failed_count=self._failed_count,
            failed=self._failed,
            reasons=self._reasons,
        )

    @contextlib.contextmanager
    def _noted(self, way: Way) -> Iterator[None]:
        """Note what cannot be restored, and go on after the block."""
        try:
            yield
        except CannotCheck as error:
            reason = str(error) or "It no longer exists."
        except OSError as error:
            reason = f"{os.strerror(error.errno or 0)}."
        else:
            return
        self._failed_count += 1
        self._reasons.add(reason)
        if len(self._failed) < MOST_FAILED:
            self._failed.append((storable("/".join(way)), reason))

    @contextlib.contextmanager
    def _reached(self, way: Way) -> Iterator[int]:
        with reached(self._current, way) as directory:
            if os.fstat(directory).st_dev != self._device:
                raise CannotCheck("It is on another filesystem.")
            yield directory

    def _restore(
        self, way: Way, directory: int, before: dict[str, os.stat_result]
    ) -> list[Way]:
        """Restore the entries of a directory; return those that are directories."""
        mode = stat.S_IMODE(os.fstat(directory).st_mode)
        if _has_opened(directory, mode):
            self._modes.append((way, mode))
        after = entries_of(self._current, way)
        below: list[Way] = []
        for name, new in after.items():
            old = before.get(name)
            if old is None or (_is_directory(new) and not _is_directory(old)):
                self._remove([*way, name], new)
        for name, old in before.items():
            with self._noted([*way, name]):
                if _is_directory(old):
                    self._ensure_directory(directory, name, after.get(name))
                    below.append([*way, name])
                    if name not in after or old.st_mode != after[name].st_mode:
                        self._modes.append((below[-1], stat.S_IMODE(old.st_mode)))
                elif name not in after or _key(old) != _key(after[name]):
                    with self._tree.opened("/".join([*way, name])) as found:
                        self._put(found, directory, name)
        return below

    def _ensure_directory(
        self, directory: int, name: str, new: os.stat_result | None
    ) -> None:
        if new is not None and not _is_directory(new):
            os.unlink(name, dir_fd=directory)
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=directory)

    def _put(self, found: Found, directory: int, name: str) -> None:
        """Give a name to a copy; what has had it is replaced at once."""
        temporary = temporary_name(name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        try:
            if not (found.is_file or found.is_link):
                raise CannotCheck("It is neither a file nor a link.")
            write_copy(found, directory, temporary)
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=directory)
        self._copied += 1

    def _remove(self, way: Way, status: os.stat_result) -> None:
        """Remove an entry, and all that is below it."""
        directories: list[Way] = []
        waiting = [(way, status)]
        while waiting:
            at, status = waiting.pop()
            with self._noted(at):
                if _is_directory(status):
                    directories.append(at)
                    with self._reached(at) as directory:
                        _has_opened(directory, stat.S_IMODE(status.st_mode))
                    found = entries_of(self._current, at)
                    waiting += [([*at, name], each) for name, each in found.items()]
                    continue
                with self._reached(at[:-1]) as directory:
                    os.unlink(at[-1], dir_fd=directory)
                self._removed += 1
        for at in reversed(directories):
            with self._noted(at), self._reached(at[:-1]) as directory:
                os.rmdir(at[-1], dir_fd=directory)
                self._removed += 1


def _is_directory(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode)


def _has_opened(directory: int, mode: int) -> bool:
    """Let its owner write to a directory; return whether that changed its mode."""
    if mode & stat.S_IWUSR:
        return False
    try:
        os.fchmod(directory, mode | stat.S_IRWXU)
    except PermissionError:  # it is somebody else's
        return False
    return True


def _key(status: os.stat_result) -> tuple[int, int, int]:
    """Return what tells versions of a file apart; links have no mode of their own."""
    return status.st_mode, status.st_size, status.st_mtime_ns
