"""Change the owner of every entry of a clone, many at a time.

It never leaves the clone's filesystem, follows a link, resolves a path a second time,
or gives anything to root.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts.trees.run import Walker, WalkReport, run_walk, unheard

OPERATION = "change ownership"
HIGHEST_ID = 2**32 - 2
"""The id above it, -1 for the kernel, means "do not change"."""


def change_ownership(
    root: Path,
    *,
    uid: int,
    gid: int,
    progress: Callable[[WalkReport], None] = unheard,
    walker: Walker | None = None,
) -> WalkReport:
    """Change the owner of the root and everything below it to `uid` and `gid`.

    Safe to repeat and to kill at any point: entries that are right are left alone. The
    report counts the root, too. Without `walker`, the compiled one is used if there is
    one.

    If the root is the top of a volume, as in a clone, not every entry is examined
    before it is changed. Some that were already right may then count as done, and
    `privileges_cleared` is a lower bound.

    Raises: ValueError (not the id of an ordinary user or group); Refused (the root is
    not a real directory, or may not be given away); Unreachable (the file server
    stopped answering).

    Source: fchownat(2), openat(2).
    """
    check_id(uid, what="uid")
    check_id(gid, what="gid")
    check_root(root, operation=OPERATION)
    return run_walk(
        root,
        owner=(uid, gid),
        operation=OPERATION,
        not_permitted=not_permitted(uid=uid, gid=gid),
        progress=progress,
        walker=walker,
    )


def check_id(number: int, *, what: str) -> None:
    """Refuse a number that is not an ordinary user or group id: 0, -1 and beyond."""
    if isinstance(number, bool) or not 0 < number <= HIGHEST_ID:
        raise ValueError(f"{what} {number!r} cannot own files of a workspace.")


def check_root(root: Path, *, operation: str) -> None:
    """Refuse a root that is not an absolute path to a real directory below "/".

    Raises: Refused.
    """
    try:
        found = root.lstat()
    except OSError as error:
        sentence = f"{root} cannot be examined: {os.strerror(error.errno or 0)}."
        raise Refused(sentence, system="host", operation=operation) from error
    sentence = ""
    if not root.is_absolute() or ".." in root.parts:
        sentence = f"{root} is not an absolute path without '..'."
    elif stat.S_ISLNK(found.st_mode):
        sentence = f"{root} is a symbolic link, not a clone's own directory."
    elif not stat.S_ISDIR(found.st_mode):
        sentence = f"{root} is not a directory."
    elif os.path.samestat(found, os.stat("/")):
        sentence = f"{root} is the root of this host, not a clone."
    if sentence:
        raise Refused(sentence, system="host", operation=operation)


def not_permitted(*, uid: int, gid: int) -> str:
    """Return why this process may not change an owner."""
    if os.geteuid() != 0:
        return (
            f"it could not be given to uid {uid} and gid {gid}, because only root may "
            f"change owners and this process runs as uid {os.geteuid()}"
        )
    return (
        f"it could not be given to uid {uid} and gid {gid} although this process runs "
        "as root: the export rule for this host lacks superuser access, or the process "
        "lacks the capability CAP_CHOWN"
    )
