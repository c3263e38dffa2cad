"""Log files of steps, readable only by workers and the web server.

They reveal source code and secrets of builds, and are on hosts that people sign in to.
Their group is that of the directory, so that a web server of another user can read
them: docs/configuration.md, LOG_DIR.
"""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from provisioner.gateways.errors import TransientGatewayError
from provisioner.gateways.fence import require_leave

DIRECTORY_MODE = 0o750
FILE_MODE = 0o640
_OTHERS = 0o007


class LogUnwritable(TransientGatewayError):
    """The log of a step cannot be written; the step was not started."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"The log {path} cannot be written on {socket.gethostname()}: "
            f"{os.strerror(error.errno or 0)}. Ask an administrator to make its "
            "directory writable for workers.",
            system="host",
            operation="log",
            remote_code=errno.errorcode.get(error.errno or 0, ""),
        )


def begin_log(path: Path) -> BinaryIO:
    """Open an empty log that others cannot read; create its directory.

    Raises: LogUnwritable.
    """
    require_leave()
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        close_directory_of_logs(path.parent)
        file = os.open(path, flags, mode=FILE_MODE)
    except OSError as error:
        raise LogUnwritable(path, error) from error
    with suppress(PermissionError):  # of another worker, from an earlier attempt
        os.fchmod(file, FILE_MODE)
        os.fchown(file, -1, path.parent.stat().st_gid)
    os.ftruncate(file, 0)
    return os.fdopen(file, "wb")


def close_logs(directory: Path) -> None:
    """Deny others access to the log directory and to everything in it.

    Raises: OSError.
    """
    close_directory_of_logs(directory)
    for entry in os.scandir(directory):
        with suppress(OSError):  # deleted in between, or owned by another user
            mode = entry.stat(follow_symlinks=False).st_mode & 0o7777
            if mode & _OTHERS and entry.is_file(follow_symlinks=False):
                os.chmod(entry.path, mode & ~_OTHERS)


def close_directory_of_logs(directory: Path) -> None:
    """Create the log directory, and deny others access to it.

    Raises: OSError.
    """
    directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    mode = directory.stat().st_mode & 0o7777
    if mode & _OTHERS:
        with suppress(PermissionError):  # its owner must close it
            directory.chmod(mode & ~_OTHERS)
