"""Whole directory trees: copy, own, remove, measure. No symlink is ever followed."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

_FICLONE = 0x40049409
_CHUNK = 1 << 30

SNAPSHOTS = ".snapshot"
"""What snapshots are shown as at the root of a volume: no part of its files."""

FileCopier = Callable[[int, int, int], None]


def reflink(source: int, target: int, size: int) -> None:
    """Share the blocks of an open file with another.

    Raises: OSError if the filesystem cannot share blocks.
    """
    fcntl.ioctl(target, _FICLONE, source)


def copy_bytes(source: int, target: int, size: int) -> None:
    """Copy an open file inside the kernel."""
    while size > 0:
        copied = os.copy_file_range(source, target, min(size, _CHUNK))
        if copied == 0:
            return
        size -= copied


def send_bytes(source: int, target: int, size: int) -> None:
    """Copy an open file to another filesystem."""
    offset = 0
    while offset < size:
        sent = os.sendfile(target, source, offset, min(size - offset, _CHUNK))
        if sent == 0:
            return
        offset += sent


def copy_tree(source: Path, *, target: Path, copy_file: FileCopier) -> None:
    """Copy a tree with owners, modes, times, symlinks and hard links.

    `target` may exist as an empty directory. Only root can keep owners; anybody else
    owns the copy.
    """
    links: dict[tuple[int, int], str] = {}
    _copy_directory(str(source), str(target), copy_file=copy_file, links=links)


def _copy_directory(
    source: str,
    target: str,
    *,
    copy_file: FileCopier,
    links: dict[tuple[int, int], str],
) -> None:
    pending = [(source, target)]
    made: list[tuple[str, os.stat_result]] = []
    while pending:
        here, there = pending.pop()
        if there != target or not os.path.isdir(there):
            os.mkdir(there, 0o700)
        made.append((there, os.lstat(here)))
        with os.scandir(here) as entries:
            for entry in entries:
                path = f"{there}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, path))
                else:
                    _copy_entry(entry, path, copy_file=copy_file, links=links)
    # A directory's times and mode are settled last, when nothing is added any more.
    for path, status in reversed(made):
        _copy_attributes(path, status)


def _copy_entry(
    entry: os.DirEntry[str],
    target: str,
    *,
    copy_file: FileCopier,
    links: dict[tuple[int, int], str],
) -> None:
    status = entry.stat(follow_symlinks=False)
    identity = (status.st_dev, status.st_ino)
    if status.st_nlink > 1 and identity in links:
        os.link(links[identity], target, follow_symlinks=False)
        return
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(entry.path), target)
    elif stat.S_ISREG(status.st_mode):
        _copy_regular(entry.path, target, status.st_size, copy_file=copy_file)
    else:
        os.mknod(target, status.st_mode, status.st_rdev)
    links[identity] = target
    _copy_attributes(target, status)


def _copy_regular(
    source: str, target: str, size: int, *, copy_file: FileCopier
) -> None:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if size:
                copy_file(reading, writing, size)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _copy_attributes(path: str, status: os.stat_result) -> None:
    if os.geteuid() == 0:
        os.chown(path, status.st_uid, status.st_gid, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        os.chmod(path, stat.S_IMODE(status.st_mode))
    times = (status.st_atime_ns, status.st_mtime_ns)
    os.utime(path, ns=times, follow_symlinks=False)


def own_tree(root: Path, *, uid: int, gid: int) -> None:
    """Change the owner of every entry of the tree; modes stay.

    A chown clears setuid and setgid bits, which the array does not, so they are set
    again. Raises: PermissionError unless run by root.
    """
    pending = [str(root)]
    _own_entry(str(root), os.lstat(root), uid=uid, gid=gid)
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                _own_entry(entry.path, status, uid=uid, gid=gid)
                if stat.S_ISDIR(status.st_mode):
                    pending.append(entry.path)


def _own_entry(path: str, status: os.stat_result, *, uid: int, gid: int) -> None:
    if status.st_uid == uid and status.st_gid == gid:
        return
    os.chown(path, uid, gid, follow_symlinks=False)
    if stat.S_ISREG(status.st_mode) and status.st_mode & 0o6000:
        os.chmod(path, stat.S_IMODE(status.st_mode))


def remove_tree(root: Path) -> None:
    """Remove the tree with its contents; safe to repeat."""
    try:
        _remove_contents(str(root))
        os.rmdir(root)
    except FileNotFoundError:
        return


def _remove_contents(root: str) -> None:
    """Empty a directory without recursion, so that any depth works."""
    pending, directories = [root], []
    while pending:
        here = pending.pop()
        if here != root:
            directories.append(here)
        if not os.access(here, os.W_OK | os.X_OK | os.R_OK):
            os.chmod(here, 0o700)
        with os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    os.unlink(entry.path)
    for path in reversed(directories):
        os.rmdir(path)


def measure_tree(root: Path, *, stopped: threading.Event) -> tuple[int, int]:
    """Return the bytes and the inodes that a volume's files take.

    Hard links count once. Unless run by root, directories that only others may enter
    are left out. Once `stopped` is set it returns what it has counted so far.
    """
    total, inodes = 0, 1
    for status in _statuses(root, stopped=stopped):
        total += status.st_blocks * 512
        inodes += 1
    return total, inodes


def _statuses(root: Path, *, stopped: threading.Event) -> Iterator[os.stat_result]:
    """Yield the status of each inode below the root, but of what shows snapshots."""
    seen: set[tuple[int, int]] = set()
    pending = [str(root)]
    while pending and not stopped.is_set():
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.name == SNAPSHOTS:
                        continue
                    status = entry.stat(follow_symlinks=False)
                    if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                        if (status.st_dev, status.st_ino) in seen:
                            continue
                        seen.add((status.st_dev, status.st_ino))
                    yield status
                    if stat.S_ISDIR(status.st_mode):
                        pending.append(entry.path)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue  # somebody is working in it, or it is closed to us


def usage_by_owner(
    root: Path, *, kind: str, stopped: threading.Event
) -> dict[int, tuple[int, int]]:
    """Return bytes and inodes by uid (`kind` "user") or by gid ("group").

    As `measure_tree`, which adds them up.
    """
    found: dict[int, tuple[int, int]] = {}

    def add(status: os.stat_result, size: int) -> None:
        owner = status.st_uid if kind == "user" else status.st_gid
        total, inodes = found.get(owner, (0, 0))
        found[owner] = (total + size, inodes + 1)

    add(os.lstat(root), 0)
    for status in _statuses(root, stopped=stopped):
        add(status, status.st_blocks * 512)
    return found


def changed_bytes(root: Path, *, base: Path | None) -> int:
    """Return the size of the files that differ from those in `base`."""
    total = 0
    pending = [""]
    while pending:
        inside = pending.pop()
        with os.scandir(root / inside) as entries:
            for entry in entries:
                name = os.path.join(inside, entry.name)
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    pending.append(name)
                elif base is None or not _is_same(base / name, status):
                    total += status.st_size
    return total


def _is_same(path: Path, status: os.stat_result) -> bool:
    try:
        other = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (other.st_size, other.st_mtime_ns) == (status.st_size, status.st_mtime_ns)
