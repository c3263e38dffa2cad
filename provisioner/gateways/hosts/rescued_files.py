"""Read rescued files as their owner: nobody else may, and root may be squashed.

Part of a file comes in pieces, so neither side ever holds more than one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from provisioner.gateways.errors import NotFound, Refused
from provisioner.gateways.hosts.descent import ENTER
from provisioner.gateways.hosts.rescues.writing import MANIFEST, TAR
from provisioner.gateways.owners import works_on_files

PIECE_BYTES = 512 * 1024
NAMES = (TAR, MANIFEST)
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@works_on_files(within_seconds=300)
def read_rescued(
    directory: Path,
    name: str,
    *,
    start: int,
    length: int,
    on_size: Callable[[int], None],
    on_piece: Callable[[int, bytes], None],
) -> None:
    """Read part of a rescued file: report its size, then each piece with its offset.

    It is shorter than `length` if the file ends before.

    Raises: ValueError (not the name of a rescue's file); NotFound (it was removed);
    Refused (it cannot be read, or this host has no rescue area).
    """
    if name not in NAMES:
        raise ValueError(f"Not a file of a rescue: {name!r}.")
    with _opened(directory, name) as file:
        size = os.fstat(file).st_size
        on_size(size)
        at, end = start, min(start + length, size)
        while data := _read_whole(file, min(PIECE_BYTES, end - at), at):
            on_piece(at, data)
            at += len(data)


def _read_whole(file: int, length: int, offset: int) -> bytes:
    """Return exactly so many bytes, fewer only at the end of the file.

    A piece that is read twice has to be the same.
    """
    data = b""
    while len(data) < length:
        more = os.pread(file, length - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data


@contextlib.contextmanager
def _opened(directory: Path, name: str) -> Iterator[int]:
    """Open a file for the block. Below the rescue area no link is followed."""
    owner, area = directory.parent, directory.parent.parent
    with contextlib.ExitStack() as opened:

        def open_below(name: str, flags: int, parent: int | None) -> int:
            descriptor = os.open(name, flags, dir_fd=parent)
            opened.callback(os.close, descriptor)
            return descriptor

        try:
            at = open_below(str(area), os.O_RDONLY | os.O_DIRECTORY, None)
        except OSError as error:
            raise Refused(
                f"The rescue area {area} cannot be read on {socket.gethostname()}: "
                f"{os.strerror(error.errno or 0)}.",
                system="host",
                operation="read rescue",
                remote_code="rescue_area_missing",
            ) from error
        try:
            for part in (owner.name, directory.name):
                at = open_below(part, ENTER, at)
            file = open_below(name, _FILE, at)
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            yield file
        except OSError as error:
            raise _why_not(error, directory / name) from error


def _why_not(error: OSError, path: Path) -> NotFound | Refused:
    is_gone = error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
    kind = NotFound if is_gone else Refused
    return kind(
        f"{path} cannot be read: {os.strerror(error.errno or 0)}.",
        system="host",
        operation="read rescue",
        remote_code="rescue_removed" if is_gone else "rescue_unreadable",
    )
