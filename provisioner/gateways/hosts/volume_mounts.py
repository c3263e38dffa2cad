"""Mount volumes one by one on a host that does not mount the SVM's namespace.

Source: mount(8), umount(8), nfs(5).
"""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from provisioner.gateways.errors import Busy, Refused, Unreachable
from provisioner.gateways.fence import require_leave
from provisioner.gateways.hosts.capabilities import how_to_allow, lacks_sys_admin
from provisioner.gateways.hosts.mounts import Mount, mounts_at, wait_until
from provisioner.gateways.hosts.namespace import require_closed, require_server
from provisioner.gateways.hosts.processes import ended_after

ANSWERS_WITHIN_SECONDS = 60.0
COMMAND_PATH = f"{os.defpath}:/usr/sbin:/sbin"
HARDENING = "nosuid,nodev"
"""Files of workspaces can do without on every host."""


@dataclass(frozen=True, kw_only=True)
class VolumeMount:
    """One volume of an SVM, and the directory of this host at which it is mounted.

    `source` is HOST:/PATH, `options` are separated by commas. `command` mounts: it is
    called with `-o OPTIONS SOURCE DIRECTORY`, as mount(8) is. The lab's volumes are
    directories of this host, which its own command binds.
    """

    source: str
    directory: Path
    options: str
    command: tuple[str, ...]
    is_lab: bool

    @property
    def all_options(self) -> str:
        return ",".join(filter(None, (self.options, HARDENING)))

    def ensure(self, *, addresses: Callable[[], Collection[str]]) -> None:
        """Mount the volume, unless it is mounted. Safe to repeat, also at once.

        What is left of a volume that is gone is unmounted first: another host may have
        retired a workspace whose name this one has.

        `addresses` are those at which the SVM serves NFS, empty if ONTAP does not say.

        Raises: Refused (something else is mounted there, the server is not the SVM's,
        or this process may not mount), Unreachable (the server), Busy.
        """
        require_closed(self.directory.parent)
        if self.is_mounted():
            if not self._is_stale():
                return
            with _alone(self.directory.parent):
                if self.is_mounted() and self._is_stale():
                    self.remove()
        if not self.is_lab:
            require_server(self.source.rpartition(":")[0], addresses=addresses())
        require_leave()
        self.directory.mkdir(mode=0o700, exist_ok=True)
        # What is locked is the directory below the mount.
        with _alone(self.directory):
            if self.is_mounted():
                return
            where = (self.source, str(self.directory))
            said = _run(*self.command, "-o", self.all_options, *where)
            if not self.is_mounted():
                _require_sys_admin("mount")
                raise Unreachable(
                    f"{self.source} could not be mounted at {self.directory}: "
                    f"{said or 'the command says nothing'}.",
                    system="host",
                    operation="mount",
                )

    def remove(self) -> None:
        """Unmount the volume if it is mounted, and remove its directory if it is empty.

        Files that somebody has open keep it mounted.

        Raises: Busy (it is in use), Refused (something else is mounted there, or this
        process may not unmount).
        """
        while self.is_mounted():
            require_leave()
            before = len(mounts_at(self.directory))
            said = _run("umount", "-c", str(self.directory))
            if len(mounts_at(self.directory)) >= before:
                _require_sys_admin("unmount")
                raise Busy(
                    f"{self.directory} is still mounted on this host: {said}. See who "
                    f"uses it with fuser -vm {self.directory}. Nothing was forced.",
                    system="host",
                    operation="unmount",
                )
        with suppress(OSError):  # not there, or not empty
            self.directory.rmdir()

    def is_mounted(self) -> bool:
        """Return whether the volume is mounted at its directory.

        Raises: Refused if something else is.
        """
        layers = mounts_at(self.directory)
        if not layers:
            return False
        if why := self._why_other(layers[-1]):
            raise Refused(
                f"At {self.directory} of this host {why}, and not {self.source}. "
                "Unmount that, then retry. Nothing was touched there.",
                system="host",
                operation="mount",
            )
        return True

    def _is_stale(self) -> bool:
        """Return whether the mounted volume is gone from its server."""
        try:
            return os.stat(self.directory).st_nlink == 0
        except OSError as error:
            if error.errno == errno.ESTALE:
                return True
            raise Unreachable(
                f"{self.directory} cannot be read on this host: {error.strerror}.",
                system="host",
                operation="mount",
            ) from error

    def _why_other(self, mount: Mount) -> str:
        is_of_a_server = ":/" in mount.source
        if is_of_a_server and mount.source != self.source:
            return f"{mount.source} is mounted"
        if not self.is_lab and not mount.fs_type.startswith("nfs"):
            return f"{mount.source} ({mount.fs_type}) is mounted"
        return ""


def _require_sys_admin(operation: str) -> None:
    """Explain why what was tried did not work.

    Raises: Refused if this process may not mount.
    """
    if lacks_sys_admin():
        raise Refused(
            f"This worker may not {operation} volumes, without CAP_SYS_ADMIN. "
            f"{how_to_allow('mounts')}",
            system="host",
            operation=operation,
        )


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keep other workers of this host waiting that lock the same directory.

    Raises: Busy (time limit).
    """
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not wait_until(
            lambda: _is_locked(opened), timeout_seconds=ANSWERS_WITHIN_SECONDS
        ):
            raise Busy(
                f"Another worker of this host is mounting at {directory}.",
                system="host",
                operation="mount",
            )
        yield
    finally:
        os.close(opened)


def _is_locked(opened: int) -> bool:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _run(*command: str) -> str:
    """Run a command and return what it says, in a line.

    Raises: Unreachable if it does not end in time, Refused if it cannot be started.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": COMMAND_PATH, "LC_ALL": "C"},
        )
    except OSError as error:
        raise Refused(
            f"{command[0]} cannot be started on this host: {error.strerror}.",
            system="host",
            operation="mount",
        ) from error
    with ended_after(process):
        try:
            said, _ = process.communicate(timeout=ANSWERS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            raise Unreachable(
                f"{command[0]} did not end within {ANSWERS_WITHIN_SECONDS:g} s.",
                system="host",
                operation="mount",
            ) from None
    return " ".join(said.decode(errors="replace").split()).rstrip(".")
