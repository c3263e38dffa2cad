"""Where this host sees volumes: mounts, junction paths, and waiting for them."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from provisioner.gateways.errors import Busy, Refused, Unreachable

BTRFS_FIRST_INODE = 256
"""The inode of a subvolume's root. Source: BTRFS_FIRST_FREE_OBJECTID, btrfs on-disk."""

MOUNTINFO = "/proc/self/mountinfo"

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.01, 0.5


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A line of /proc/self/mountinfo. `root` is the mounted part of the filesystem."""

    mount_point: Path
    root: str
    fs_type: str
    source: str
    options: tuple[str, ...]


def find_mount(path: Path) -> Mount | None:
    """Return the mount that holds `path`, None if the path does not exist."""
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        begins = _mount_id(opened) + b" "
        # The kernel writes the list piece by piece: older mounts take no reading of
        # the thousand after them.
        with open(MOUNTINFO, "rb") as lines:
            found = next((line for line in lines if line.startswith(begins)), None)
    finally:
        os.close(opened)
    # None of one that was unmounted just now, too.
    return None if found is None else _mount(found)


def _mount_id(opened: int) -> bytes:
    """Return the mount of an opened path, as /proc/self/mountinfo numbers it.

    Source: proc_pid_fdinfo(5).
    """
    with open(f"/proc/self/fdinfo/{opened}", "rb") as lines:
        fields = dict(line.split(b":", 1) for line in lines)
    return fields[b"mnt_id"].strip()


def _mountinfo() -> list[bytes]:
    """Return a line per mount that this process sees.

    A host may have a thousand mounts, one per workspace: read only the needed ones.

    Source: proc_pid_mountinfo(5).
    """
    with open(MOUNTINFO, "rb") as lines:
        return lines.readlines()


def _mount(line: bytes) -> Mount:
    before, after = os.fsdecode(line).rstrip("\n").split(" - ", 1)
    _, _, _, root, mount_point, options, *_ = before.split(" ")
    fs_type, source, super_options = after.split(" ")
    return Mount(
        mount_point=Path(_unescaped(mount_point)),
        root=_unescaped(root),
        fs_type=fs_type,
        source=_unescaped(source),
        options=tuple(dict.fromkeys((*options.split(","), *super_options.split(",")))),
    )


def _unescaped(text: str) -> str:
    """Undo the kernel's octal escapes of blanks and backslashes."""
    return os.fsdecode(
        re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), os.fsencode(text))
    )


def mounts_at(directory: Path) -> list[Mount]:
    """Return what is mounted at a directory, the visible one last. It is not touched.

    Its path is absolute, without symbolic links.
    """
    wanted = _escaped(directory)
    return [_mount(line) for line in _mountinfo() if _mount_point(line) == wanted]


def mounted_in(directory: Path) -> list[Mount]:
    """Return what is mounted at entries of a directory. Nothing of it is touched.

    Its path is absolute, without symbolic links.
    """
    begins = _escaped(directory).rstrip(b"/") + b"/"
    found = (line for line in _mountinfo() if _mount_point(line).startswith(begins))
    return [each for each in map(_mount, found) if each.mount_point.parent == directory]


@dataclass(frozen=True, kw_only=True)
class NfsUse:
    """Mounts of NFS with the same options. `at` is the directory that they are in.

    `options` are those that say how files behave, such as vers=3 and nolock.
    """

    at: str
    options: tuple[str, ...]
    mounts: int


MOST_NFS_USES = 50
_BEHAVIOUR = (
    *("vers=", "nconnect=", "local_lock=", "hard", "soft", "softerr", "nolock"),
    "nocto",
)


def nfs_uses() -> list[NfsUse]:
    """Return how this host uses NFS, by directory; a few of very many."""
    return uses_of(mount for mount in map(_mount, _mountinfo()))


def uses_of(mounts: Iterable[Mount]) -> list[NfsUse]:
    """Return the mounts of NFS among these, those with the same options together.

    A mount that is alone in its directory is named itself: it may be a namespace.
    """
    found: dict[tuple[Path, tuple[str, ...]], list[Mount]] = {}
    for mount in mounts:
        if mount.fs_type in ("nfs", "nfs4"):
            options = tuple(o for o in mount.options if _says_behaviour(o))
            found.setdefault((mount.mount_point.parent, options), []).append(mount)
    uses = [
        NfsUse(
            at=str(directory if len(same) > 1 else same[0].mount_point),
            options=options,
            mounts=len(same),
        )
        for (directory, options), same in found.items()
    ]
    return sorted(uses, key=lambda use: use.at)[:MOST_NFS_USES]


def _says_behaviour(option: str) -> bool:
    return any(
        option.startswith(name) if name.endswith("=") else option == name
        for name in _BEHAVIOUR
    )


def has_mounts_below(path: str) -> bool:
    """Return whether something is mounted strictly below a directory."""
    below = _escaped(Path(path).resolve()).rstrip(b"/") + b"/"
    points = map(_mount_point, _mountinfo())
    return any(point.startswith(below) and point != below for point in points)


def _mount_point(line: bytes) -> bytes:
    return line.split(b" ", 5)[4]


def _escaped(path: Path) -> bytes:
    """Return a path as the kernel escapes blanks, newlines and backslashes in it."""
    return re.sub(rb"[ \t\n\\]", lambda m: b"\\%03o" % ord(m[0]), os.fsencode(path))


def is_whole_filesystem(path: str) -> bool:
    """Return whether a directory is the root of a filesystem, volume or subvolume.

    If it is, no file below it has a hard link elsewhere. False if unknown.
    """
    directory = Path(path).resolve()
    holding, above = find_mount(directory), find_mount(directory.parent)
    if holding is None or above is None:
        return False
    if holding.fs_type == "btrfs":
        return directory.stat().st_ino == BTRFS_FIRST_INODE
    if holding.mount_point != directory:
        return False
    if holding.fs_type.startswith("nfs"):
        # A crossed junction is. A manual mount may show only part of a volume.
        return above.fs_type.startswith("nfs")
    return holding.root == "/"


def path_below(mount_root: Path, *, junction_path: str) -> Path:
    """Return the path of a junction on this host, which mounts the namespace.

    `mount_root` is where the namespace is mounted. Every directory on the way is a real
    one below it. The junction itself may be a symbolic link, if root or this process
    created it in a directory that nobody else may write to. (The lab mounts like this
    without root.) The result is then its target. A path that does not exist yet is no
    error: see `wait_until_visible`.

    Raises: Refused.
    """
    parts = junction_path.split("/")
    is_absolute = len(parts) > 1 and not parts[0]
    if not is_absolute or "\0" in junction_path or {"", ".", ".."} & set(parts[1:]):
        raise _refused(
            f"{junction_path!r} is not a junction path. One begins with '/', names "
            "something, and has no '..' in it."
        )
    path = mount_root.resolve()
    for part in parts[1:-1]:
        path /= part
        if path.is_symlink():
            raise _refused(f"{path} on the way to {junction_path} is a symbolic link.")
    holder, path = path, path / parts[-1]
    if not path.is_symlink():
        return path
    _check_link_is_ours(path, holder=holder)
    return path.resolve()


def _check_link_is_ours(link: Path, *, holder: Path) -> None:
    """Refuse a junction link that another user could have created."""
    trusted = {0, os.geteuid()}
    directory = holder.stat()
    is_open_to_others = stat.S_IMODE(directory.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    if (
        link.lstat().st_uid not in trusted
        or directory.st_uid not in trusted
        or is_open_to_others
    ):
        raise _refused(
            f"{link} is a symbolic link that a user other than this host's "
            "administrator could have created."
        )


def _refused(sentence: str) -> Refused:
    return Refused(sentence, system="host", operation="find junction")


def wait_until_visible(path: Path, *, timeout_seconds: float) -> None:
    """Wait until `path` is a directory on this host.

    An NFS client caches for a while that a name does not exist. Reading the directory
    above makes it look again.

    Raises: Unreachable (time limit).
    """

    def is_visible() -> bool:
        try:
            if path.is_dir():
                return True
            os.listdir(path.parent)
        except OSError:
            return False
        return path.is_dir()

    if not wait_until(is_visible, timeout_seconds=timeout_seconds):
        raise Unreachable(
            f"{path} did not appear on this host within {timeout_seconds:g} s. Is the "
            "namespace mounted, and does the export policy admit this host?",
            system="host",
            operation="wait for junction",
        )


def wait_until_gone(path: Path, *, timeout_seconds: float) -> None:
    """Wait until `path` is gone. A stale handle of a destroyed volume counts as gone.

    Raises: Busy (time limit).
    """

    def is_gone() -> bool:
        try:
            path.lstat()
        except OSError as error:
            return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
        return False

    if not wait_until(is_gone, timeout_seconds=timeout_seconds):
        raise Busy(
            f"{path} is still there after {timeout_seconds:g} s. It may be in use: "
            "check with fuser -m.",
            system="host",
            operation="wait for junction",
        )


def wait_until(is_so: Callable[[], bool], *, timeout_seconds: float) -> bool:
    """Return whether something became so in time."""
    deadline = time.monotonic() + timeout_seconds
    pause = FIRST_PAUSE_SECONDS
    while not is_so():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
    return True
