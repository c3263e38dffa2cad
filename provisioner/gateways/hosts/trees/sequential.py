"""The walk without a compiler: slow, one entry after the other.

It takes the same orders as `compiled/walk.h`, and gives the same answers.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

from provisioner.gateways.hosts.descent import Descent, reached
from provisioner.gateways.hosts.processes import begin_with_leave, die_with_parent
from provisioner.gateways.snapshot_directories import SNAPSHOTS

SECONDS_BETWEEN_REPORTS = 0.2
COUNTS = ("entries", "done", "already", "privileged", "vanished", "failed", "skipped")


def say(**line: Any) -> None:
    """Write one line to the caller."""
    print(json.dumps(line), flush=True)


class Walk:
    """Gives each entry to the owner, or removes it if there is none."""

    def __init__(
        self, at: Descent, *, owner: tuple[int, int] | None, is_whole: bool
    ) -> None:
        self._at, self._owner, self._is_whole = at, owner, is_whole
        self._counts = Counter(dict.fromkeys(COUNTS, 0))
        # By inode: the names of a file, and the path to each from the root.
        self._linked: dict[int, dict[tuple[object, str], list[str]]] = {}
        self._said_at = time.monotonic()

    def run(self) -> None:
        """Walk to the end. If the root refuses a change, it is refused for all."""
        try:
            if self._owner:
                self._give(".", self._owner)
        except OSError as error:
            say(root_failed=error.errno)
            return
        self._list()
        while self._at.levels:
            waiting = self._at.levels[-1].waiting
            if waiting:
                self._enter(waiting.pop())
            else:
                self._leave()
        for inode, ways in self._linked.items():
            self._settle(inode, list(ways.values()))
        say(ended=self._counts)

    def _enter(self, name: str) -> None:
        try:
            is_ours = self._at.enter(name)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):  # It was replaced.
                self._act(name)
            else:
                self._fail(error, name)
            return
        if not is_ours:
            self._skip(name)
            return
        if self._owner:
            self._act(".")
        self._list()

    def _list(self) -> None:
        level = self._at.levels[-1]
        try:
            with os.scandir(self._at.fd) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        self._act(entry.name)
                    elif entry.name == SNAPSHOTS:
                        level.stays = True
                    else:
                        level.waiting.append(entry.name)
        except OSError as error:
            self._fail(error)

    def _leave(self) -> None:
        *above, left = self._at.levels
        try:
            self._at.leave()
        except (
            OSError
        ) as error:  # It was moved, so the directories above are out of reach.
            for name in above[-1].waiting:
                self._fail(error, name)
            above[-1].waiting.clear()
            left.stays = True
        if above and left.stays:
            above[-1].stays = True
        elif above and not self._owner:
            self._act(left.name, remove=os.rmdir)

    def _act(self, name: str, *, remove: Callable[..., None] = os.unlink) -> None:
        try:
            if not self._at.has(name):
                self._skip(name)
            elif self._owner:
                self._give(name, self._owner)
            else:
                remove(name, dir_fd=self._at.fd)
                self._count("done")
        except OSError as error:
            self._fail(error, name)

    def _give(self, name: str, owner: tuple[int, int]) -> None:
        found = os.stat(name, dir_fd=self._at.fd, follow_symlinks=False)
        has_names = found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode)
        if (found.st_uid, found.st_gid) == owner:
            self._count("already")
        elif has_names and not self._is_whole:
            # A directory that is moved meanwhile is read twice, but counts once.
            ways = self._linked.setdefault(found.st_ino, {})
            ways[self._at.levels[-1].identity, name] = self._at.names_to(name)
        else:
            os.chown(name, *owner, dir_fd=self._at.fd, follow_symlinks=False)
            self._counts["privileged"] += _loses_privilege(found.st_mode)
            self._count("done")

    def _settle(self, inode: int, ways: list[list[str]]) -> None:
        """Change a file's owner if all of its names are in the tree and exist."""
        assert self._owner
        try:
            for *above, name in ways:
                with reached(self._at.root_fd, above) as fd:
                    found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if (found.st_ino, found.st_nlink) != (inode, len(ways)):
                    raise OSError(errno.EMLINK, "it has a hard link outside the tree")
            with reached(self._at.root_fd, above) as fd:
                os.chown(name, *self._owner, dir_fd=fd, follow_symlinks=False)
        except OSError as error:
            for way in ways:
                self._count("failed")
                say(failed=["/".join(way), error.errno])
        else:
            self._counts["privileged"] += _loses_privilege(found.st_mode)
            for _ in ways:
                self._count("done")

    def _fail(self, error: OSError, *name: str) -> None:
        if error.errno == errno.ENOENT:
            self._counts["vanished"] += 1
            return
        self._count("failed")
        self._stays("failed", name, error.errno)

    def _skip(self, name: str) -> None:
        self._counts["skipped"] += 1
        self._stays("skipped", (name,), 0)

    def _stays(self, why: str, name: tuple[str, ...], number: int | None) -> None:
        self._at.levels[-1].stays = True
        say(**{why: ["/".join(self._at.names_to(*name)) or ".", number]})

    def _count(self, what: str) -> None:
        self._counts[what] += 1
        self._counts["entries"] += 1
        if time.monotonic() - self._said_at > SECONDS_BETWEEN_REPORTS:
            self._said_at = time.monotonic()
            say(progress=self._counts)


def _loses_privilege(mode: int) -> bool:
    # setgid without group execute means mandatory locking; chown keeps it.
    is_setgid = mode & stat.S_ISGID and mode & stat.S_IXGRP
    return stat.S_ISREG(mode) and bool(mode & stat.S_ISUID or is_setgid)


def main(
    parent: str, silent: str, root_fd: str, has_mounts: str, _: str, *own: str
) -> None:
    """Run the order."""
    die_with_parent(int(parent))
    begin_with_leave(float(silent), ask=lambda: say(ready=True))
    owner, is_whole = (int(own[0]), int(own[1])) if own else None, "1" in own[2:]
    with closing(Descent(int(root_fd), minds_mounts=has_mounts == "1")) as at:
        Walk(at, owner=owner, is_whole=is_whole).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
