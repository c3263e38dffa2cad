"""Remove what Perforce does not manage from a tree that nobody works in.

Directories are opened one below the other and never by path, so a symlink cannot
redirect it. Other filesystems are not entered. Several run in parallel, as a file
server needs time for each.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from provisioner.gateways.hosts.descent import ENTER, reached
from provisioner.gateways.owners import HOUR, works_on_files
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import PerforceAccount
from provisioner.gateways.snapshot_directories import SNAPSHOTS

THREADS = 16
FAILURES_NAMED = 10
SECONDS_BETWEEN_REPORTS = 0.5


@dataclass(frozen=True, kw_only=True)
class ClearReport:
    """`removed` counts files and directories; `failures` names up to ten."""

    removed: int
    failed: int
    failures: tuple[str, ...]


@works_on_files(within_seconds=4 * HOUR)
def clear_client(
    account: PerforceAccount,
    *,
    client: str,
    client_root: Path,
    root: Path,
    on_progress: Callable[[int], None],
) -> ClearReport:
    """Remove everything below the Root that the client does not have.

    `client_root` is the client's Root, `root` the same directory on this host.
    `on_progress` gets the number of entries removed.

    Raises: any GatewayError of `p4 have`.
    """
    keep = Versioned(client_root)
    PerforceGateway(account).files.local_paths(client, keep.add)
    return clear_tree(root, keep=keep, show=on_progress)


class Versioned:
    """Which files below `root` are kept, and the directories that lead to them.

    Kept as hashes to save memory. A collision can only keep a file that should be
    removed.
    """

    def __init__(self, root: Path) -> None:
        self._prefix = os.fsencode(root).rstrip(b"/") + b"/"
        self._files: set[int] = set()
        self._directories: set[int] = set()

    def add(self, path: str) -> None:
        """Keep the file at this local path."""
        inside = os.fsencode(path).removeprefix(self._prefix)
        self._files.add(hash(inside))
        while (cut := inside.rfind(b"/")) > 0:
            inside = inside[:cut]
            if hash(inside) in self._directories:
                return
            self._directories.add(hash(inside))

    def has_file(self, path: bytes) -> bool:
        return hash(path) in self._files

    def leads_on(self, path: bytes) -> bool:
        return hash(path) in self._directories


def clear_tree(
    root: Path, *, keep: Versioned, show: Callable[[int], None] = lambda removed: None
) -> ClearReport:
    """Remove everything below `root` except what `keep` contains. Safe to repeat.

    A directory where a file should be, or a file where a directory should be, is
    removed.
    """
    root_fd = os.open(root, ENTER)
    try:
        return _Clearing(root_fd, keep=keep, show=show).run()
    finally:
        os.close(root_fd)


@dataclass
class _Found:
    """The result of one directory: its subdirectories, and what became of its files."""

    directories: list[bytes] = field(default_factory=list)
    removed: int = 0
    failures: list[str] = field(default_factory=list)


class _Clearing:
    def __init__(
        self, root_fd: int, *, keep: Versioned, show: Callable[[int], None]
    ) -> None:
        self._root_fd = root_fd
        self._device = os.fstat(root_fd).st_dev
        self._keep = keep
        self._show = show
        self._shown_at = 0.0
        self._lock = threading.Lock()
        self._removed = 0
        self._failures: list[str] = []

    def run(self) -> ClearReport:
        superfluous: dict[int, list[bytes]] = defaultdict(list)
        with ThreadPoolExecutor(THREADS) as threads:
            running: set[Future[_Found]] = {threads.submit(self._visit, b"")}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for found in (future.result() for future in done):
                    self._count(found)
                    for path in found.directories:
                        if not self._keep.leads_on(path):
                            superfluous[path.count(b"/")].append(path)
                        running.add(threads.submit(self._visit, path))
            for depth in sorted(superfluous, reverse=True):
                for found in threads.map(self._remove_directory, superfluous[depth]):
                    self._count(found)
        return ClearReport(
            removed=self._removed,
            failed=len(self._failures),
            failures=tuple(sorted(self._failures)[:FAILURES_NAMED]),
        )

    def _count(self, found: _Found) -> None:
        self._removed += found.removed
        self._failures += found.failures
        now = time.monotonic()
        if now - self._shown_at > SECONDS_BETWEEN_REPORTS:
            self._shown_at = now
            self._show(self._removed)

    def _visit(self, path: bytes) -> _Found:
        """Remove the unversioned files of a directory; list its subdirectories."""
        found = _Found()
        try:
            with self._reached(path) as fd:
                _let_us_write(fd)
                for name, is_directory in list(_entries(fd, device=self._device)):
                    inside = path + b"/" + name if path else name
                    if is_directory:
                        found.directories.append(inside)
                    elif not self._keep.has_file(inside):
                        self._remove(found, inside, fd=fd, name=name)
        except OSError as error:
            found.failures.append(_failure(path, error))
        return found

    def _remove(self, found: _Found, inside: bytes, *, fd: int, name: bytes) -> None:
        try:
            os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            return
        except OSError as error:
            found.failures.append(_failure(inside, error))
        else:
            found.removed += 1

    def _remove_directory(self, path: bytes) -> _Found:
        found = _Found()
        above, _, name = path.rpartition(b"/")
        try:
            with self._reached(above) as fd:
                os.rmdir(name, dir_fd=fd)
        except FileNotFoundError:
            pass
        except OSError as error:
            found.failures.append(_failure(path, error))
        else:
            found.removed += 1
        return found

    def _reached(self, path: bytes) -> AbstractContextManager[int]:
        names = path.split(b"/") if path else []
        return reached(self._root_fd, names, enter=_open_directory)


def _open_directory(name: bytes, *, dir_fd: int) -> int:
    """Open a directory, even if its mode denies its owner access."""
    try:
        return os.open(name, ENTER, dir_fd=dir_fd)
    except PermissionError:
        place = os.open(name, os.O_PATH | ENTER, dir_fd=dir_fd)
        try:
            os.chmod(f"/proc/self/fd/{place}", stat.S_IRWXU)
        finally:
            os.close(place)
        return os.open(name, ENTER, dir_fd=dir_fd)


def _entries(fd: int, *, device: int) -> Iterable[tuple[bytes, bool]]:
    """Yield each name and whether it is a directory; mount points are left out."""
    for name in os.listdir(fd):
        with contextlib.suppress(FileNotFoundError):
            known = os.stat(name, dir_fd=fd, follow_symlinks=False)
            is_directory = stat.S_ISDIR(known.st_mode)
            if known.st_dev == device and not (is_directory and name == SNAPSHOTS):
                yield os.fsencode(name), is_directory


def _let_us_write(fd: int) -> None:
    """Make a directory writable: builds create read-only ones, such as caches."""
    mode = stat.S_IMODE(os.fstat(fd).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.fchmod(fd, mode | stat.S_IRWXU)


def _failure(path: bytes, error: OSError) -> str:
    name = path.decode("utf-8", "backslashreplace") or "."
    return f"{name}: {error.strerror}"
