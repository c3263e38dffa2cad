"""Write small files safely into another user's directory."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from provisioner.gateways.errors import GatewayError, PermanentGatewayError
from provisioner.gateways.fence import require_leave
from provisioner.gateways.hosts.descent import ENTER

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE = 0o644


def write_as_owner(root: Path, name: str, content: str, *, uid: int, gid: int) -> None:
    """Write a file of this name and content in `root`, owned by uid and gid.

    Atomic: either the old or the new file is there, never part of one. Whatever had the
    name is replaced and never followed. A file that is already so stays, with its time
    of modification. Safe to repeat.

    Raises: ValueError (a name with a slash, a root uid); PermanentGatewayError (the
    file system refuses, for example because a directory has the name).
    """
    if "/" in name or name in ("", ".", ".."):
        raise ValueError(f"Not a file name: {name!r}.")
    if uid <= 0 or gid <= 0:
        raise ValueError("No file is written for uid or gid 0.")
    require_leave()
    temporary = f".{name}.{secrets.token_hex(8)}"
    try:
        directory = os.open(root, ENTER)
        try:
            if _is_written(directory, name, content, owner=(uid, gid)):
                return
            _write(directory, temporary, content, owner=(uid, gid))
            try:
                os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except OSError:
                os.unlink(temporary, dir_fd=directory)
                raise
        finally:
            os.close(directory)
    except OSError as error:
        raise _refused(error, path=root / name) from error


def _is_written(
    directory: int, name: str, content: str, *, owner: tuple[int, int]
) -> bool:
    """Return whether the name is a file of its own with this owner and content."""
    try:
        file = os.open(name, _READ, dir_fd=directory)
    except OSError:
        return False
    with os.fdopen(file, "rb") as stream:
        status = os.fstat(file)
        whole = content.encode()
        return (
            status.st_mode == stat.S_IFREG | _MODE
            and status.st_nlink == 1
            and (os.geteuid() != 0 or (status.st_uid, status.st_gid) == owner)
            and status.st_size == len(whole)
            and stream.read() == whole
        )


def close_directory(path: Path) -> None:
    """Let only the owner enter a directory, which must not be a link. Safe to repeat.

    Raises: PermanentGatewayError (it belongs to somebody else).
    """
    require_leave()
    try:
        directory = os.open(path, ENTER)
        try:
            os.fchmod(directory, 0o700)
        finally:
            os.close(directory)
    except OSError as error:
        raise PermanentGatewayError(
            f"The mode of {path} could not be changed: {error.strerror}.",
            system="host",
            operation="close directory",
            remote_code=str(error.errno),
        ) from error


def _write(directory: int, name: str, content: str, *, owner: tuple[int, int]) -> None:
    """Create a file in an open directory; remove it if it cannot be completed."""
    file = os.open(
        name,
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
        mode=0o600,
        dir_fd=directory,
    )
    try:
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            stream.write(content)
            stream.flush()
            if os.geteuid() == 0:
                os.fchown(file, *owner)
            os.fchmod(file, _MODE)
    except OSError:
        os.unlink(name, dir_fd=directory)
        raise


def _refused(error: OSError, *, path: Path) -> GatewayError:
    return PermanentGatewayError(
        f"{path} could not be written: {error.strerror}.",
        system="host",
        operation="write file",
        remote_code=str(error.errno),
    )
