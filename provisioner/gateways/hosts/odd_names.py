"""Names that are not UTF-8, which Perforce's client cannot tell us."""

from __future__ import annotations

import os
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def find_odd_names(root: Path) -> tuple[list[str], list[str]]:
    """Return paths from the root whose last part is not UTF-8, and the files behind.

    The first list has the entries with such names, directories among them; the second
    has every entry that is no directory and has such a part anywhere in its path. Bytes
    are escaped as os.fsdecode does. Links are not followed and other filesystems not
    entered.
    """
    top: list[str] = []
    files: list[str] = []
    root_fd = os.open(root, _DIRECTORY)
    try:
        device = os.fstat(root_fd).st_dev
        for directory, names, plain, fd in os.fwalk(
            ".", dir_fd=root_fd, follow_symlinks=False
        ):
            if os.fstat(fd).st_dev != device:
                names.clear()
                continue
            here = directory.removeprefix(".").removeprefix("/")
            is_odd_here = _is_odd(here)
            for name in (*names, *plain):
                path = f"{here}/{name}" if here else name
                if _is_odd(name) and not is_odd_here:
                    top.append(path)
            files += [
                f"{here}/{name}" if here else name
                for name in (*plain, *_links(names, fd))
                if is_odd_here or _is_odd(name)
            ]
    finally:
        os.close(root_fd)
    return sorted(top), sorted(files)


def _links(names: list[str], fd: int) -> list[str]:
    """Return which of the directories that were listed are links to one."""
    found = []
    for name in names:
        try:
            os.readlink(name, dir_fd=fd)
        except OSError:
            continue
        found.append(name)
    return found


def _is_odd(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return True
    return False
