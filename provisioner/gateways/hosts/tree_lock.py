"""A file at the root of a tree that names the host running a command in it.

A host that is cut off from the database continues its command while another host gets
the step: both would write to the same volume. So the second host waits until the first
has ended, or has been silent for as long as its command may live without a worker. No
clocks are compared: a lock that changes while it is watched is alive.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from provisioner.gateways.errors import Busy, TransientGatewayError

NAME = ".cloneyard-lock"
POLL_EVERY_SECONDS = 0.25
_HOLDER_BYTES = 1000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeLock:
    """The lock of one tree. `place` names the host until its next boot.

    A lock of the same place was left by a killed worker, whose command has been
    stopped.
    """

    def __init__(self, tree: Path, *, place: str, stale_seconds: float) -> None:
        self._path = tree / NAME
        self._place = place
        self._stale_seconds = stale_seconds

    @contextlib.contextmanager
    def held(self) -> Iterator[TreeLock]:
        """Hold the lock in the block, which must `beat` it.

        Raises: Busy (another host is running a command); TransientGatewayError (the
        lock cannot be written).
        """
        try:
            while not self._make():
                self._wait_for_others()
                self._path.unlink(missing_ok=True)
        except OSError as error:
            raise TransientGatewayError(
                f"The command could not be run: its lock {self._path} cannot be "
                f"written: {os.strerror(error.errno or 0)}.",
                system="host",
                operation="run command",
            ) from error
        try:
            yield self
        finally:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def wait(self) -> None:
        """Return once no other host runs a command; remove what that one left.

        Writes nothing, so that a full volume can be cleaned.

        Raises: Busy (another host is running a command).
        """
        if self._moment() is not None:
            self._wait_for_others()
            with contextlib.suppress(OSError):  # a command put something else there
                self._path.unlink()

    def beat(self) -> None:
        """Report that the command is alive; write the lock again if it was removed."""
        try:
            os.utime(self._path, follow_symlinks=False)
        except FileNotFoundError:
            with contextlib.suppress(OSError):
                self._make()
        except OSError:
            pass  # a full volume, or no access: the command will notice that, too

    def _make(self) -> bool:
        try:
            fd = os.open(self._path, _MAKE, mode=0o644)
        except FileExistsError:
            return False
        with os.fdopen(fd, "w") as file:
            file.write(f"{socket.gethostname()}\n{self._place}\n")
        return True

    def _holder(self) -> tuple[str, str]:
        """Return name and place of the host that holds it, "" if unknown."""
        with contextlib.suppress(OSError):
            fd = os.open(self._path, _READ)
            with os.fdopen(fd, "rb") as file:
                text = file.read(_HOLDER_BYTES).decode(errors="replace")
            host, place, *_ = [*text.split("\n"), "", ""]
            return host, place
        return "", ""

    def _wait_for_others(self) -> None:
        if self._holder()[1] == self._place:
            return
        seen, ends_at = self._moment(), time.monotonic() + self._stale_seconds
        while time.monotonic() < ends_at:
            time.sleep(POLL_EVERY_SECONDS)
            now = self._moment()
            if now is None:
                return
            if now != seen:
                raise Busy(
                    f"A command still runs in {self._path.parent} on "
                    f"{self._holder()[0] or 'another host'}, which may be cut off from "
                    "the database. This continues when that command has ended.",
                    system="host",
                    operation="run command",
                )

    def _moment(self) -> int | None:
        """Return the time of the last beat, None if the lock is gone.

        The file is opened first, as NFS clients cache attributes of files that are not.
        """
        try:
            fd = os.open(self._path, _READ)
        except FileNotFoundError:
            return None
        except OSError:
            return 0  # not a lock of ours: a command put something else there
        try:
            return os.fstat(fd).st_mtime_ns
        finally:
            os.close(fd)
