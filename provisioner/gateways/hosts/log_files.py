"""Files that steps print into: for workers, the web server and nobody else.

They tell of source code and of builds' secrets, and lie on hosts that people sign in
to. Their group is that of the directory, so that a web server of another user can read
them: docs/configuration.md, LOG_DIR.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

DIRECTORY_MODE = 0o750
FILE_MODE = 0o640
_OTHERS = 0o007


def begin_log(path: Path) -> BinaryIO:
    """Open a log that is empty, and that others cannot read; have its directory.

    Raises: OSError.
    """
    close_directory_of_logs(path.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(path, flags, mode=FILE_MODE)
    with suppress(PermissionError):  # another worker's, of an earlier attempt
        os.fchmod(file, FILE_MODE)
        os.fchown(file, -1, path.parent.stat().st_gid)
    os.ftruncate(file, 0)
    return os.fdopen(file, "wb")


def close_logs(directory: Path) -> None:
    """Have others enter neither the directory of logs nor what lies in it by now."""
    close_directory_of_logs(directory)
    for entry in os.scandir(directory):
        with suppress(OSError):  # gone meanwhile, or another user's
            mode = entry.stat(follow_symlinks=False).st_mode & 0o7777
            if mode & _OTHERS and entry.is_file(follow_symlinks=False):
                os.chmod(entry.path, mode & ~_OTHERS)


def close_directory_of_logs(directory: Path) -> None:
    """Have the directory of logs, and others not enter it."""
    directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    mode = directory.stat().st_mode & 0o7777
    if mode & _OTHERS:
        with suppress(PermissionError):  # whose it is has to close it
            directory.chmod(mode & ~_OTHERS)
