"""The first process of a sandbox: starts the command, and ends what it leaves."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import select
import signal
import socket
import struct
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from provisioner.gateways.hosts.sandbox import kernel
from provisioner.gateways.hosts.sandbox.bounds import Order
from provisioner.gateways.hosts.sandbox.cgroup import Cgroup
from provisioner.gateways.hosts.sandbox.files import (
    arrange_files,
    leave_mounts,
    mount_proc,
)
from provisioner.gateways.hosts.sandbox.memory import WATCHED_EVERY_SECONDS, takes_more

POLL_EVERY_SECONDS = 3600.0
OOM_SCORE = "500"
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_AWAITED = (signal.SIGCHLD, signal.SIGTERM)
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


class _NoNamespace(Exception):
    """The request needs namespaces, which we may not create."""


class Init:
    """Runs one command. `say` reports; `parent_has_ended` closes with our parent."""

    def __init__(
        self,
        order: Order,
        say: Callable[..., None],
        *,
        group: Cgroup | None,
        output: int,
        parent_has_ended: int,
    ) -> None:
        self._order, self._say = order, say
        self._group, self._output = group, output
        self._parent_has_ended = parent_has_ended
        self._watches_memory = False
        self._watch_at = 0.0

    def run(self) -> NoReturn:
        """Run the command, end what it leaves, report how it ended, and end."""
        has_namespace = os.getpid() == 1
        sees_its_own = not has_namespace
        try:
            self._die_with_parent(signal.SIGKILL if has_namespace else signal.SIGTERM)
            if self._group is not None:
                self._group.join()
            if has_namespace:
                sees_its_own = self._arrange()
            elif not self._order.bounds.has_network:
                raise _NoNamespace
            self._watch_memory(sees_its_own=sees_its_own)
            signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
            if not has_namespace:
                kernel.adopt_orphans()
            kernel.hide_memory()
            command = os.fork()
            if command == 0:
                self._become_command()
            end_all = _signal_namespace if has_namespace else signal_descendants
            self._say(ended=self._attend(command, end_all))
        except _NoNamespace:
            self._say(refused="This host cannot run commands without a network.")
        except OSError as error:
            self._say(broke=str(error))
        except BaseException:
            traceback.print_exc()  # a bug of ours, for the log
        finally:
            os._exit(0)

    def _die_with_parent(self, number: int) -> None:
        kernel.signal_at_parents_end(number)
        if select.select([self._parent_has_ended], [], [], 0)[0]:
            os._exit(1)  # the parent has already ended

    def _watch_memory(self, *, sees_its_own: bool) -> None:
        """Watch the memory if it is to be bounded and no cgroup does that."""
        by_group = self._group is not None and "memory" in self._group.bounds
        if not self._order.bounds.memory_bytes or by_group:
            return
        self._watches_memory = sees_its_own
        if sees_its_own:
            self._say(in_force="watched_memory")
        else:
            self._say(missing="memory", why="no cgroup, and its processes are unseen")

    def _arrange(self) -> bool:
        """Make the namespaces; return whether /proc shows this one's processes."""
        bounds = self._order.bounds
        if not bounds.has_network:
            try:
                kernel.unshare(kernel.CLONE_NEWNET)
            except OSError as error:
                raise _NoNamespace from error
            _raise_loopback()
            self._say(in_force="network")
        self._try("ipc", lambda: kernel.unshare(kernel.CLONE_NEWIPC))
        if self._try("mounts", leave_mounts):
            arrange_files(
                hidden=list(bounds.hidden),
                shown=[(at, what) for at, what in bounds.shown],
                tmp_bytes=bounds.tmp_bytes,
            )
            return self._try("proc", mount_proc)
        return False

    def _try(self, name: str, arrange: Callable[[], Any]) -> bool:
        try:
            arrange()
        except OSError as error:
            self._say(missing=name, why=error.strerror)
            return False
        self._say(in_force=name)
        return True

    def _attend(self, command: int, end_all: Callable[[int], None]) -> int:
        """Reap until nothing is left; return how the command ended.

        When it has ended, or on SIGTERM, the others are asked to end, and killed if
        they do not. Whatever takes too much memory is killed at once.
        """
        code, kill_at = 0, None
        while True:
            left = POLL_EVERY_SECONDS if kill_at is None else kill_at - time.monotonic()
            if left <= 0:
                end_all(signal.SIGKILL)
                left = POLL_EVERY_SECONDS
            if self._watches_memory:
                left = min(left, WATCHED_EVERY_SECONDS)
            seen = signal.sigtimedwait(_AWAITED, left)
            has_ended, is_empty, status = _reap(command)
            if has_ended:
                code = os.waitstatus_to_exitcode(status)
            if is_empty:
                return code
            is_to_end = has_ended or (seen and seen.si_signo == signal.SIGTERM)
            if is_to_end and kill_at is None:
                end_all(signal.SIGTERM)
                kill_at = time.monotonic() + self._order.bounds.grace_seconds
            if self._takes_too_much():
                self._say(ran_out_of_memory=True)
                end_all(signal.SIGKILL)

    def _takes_too_much(self) -> bool:
        if not self._watches_memory or time.monotonic() < self._watch_at:
            return False
        self._watch_at = time.monotonic() + WATCHED_EVERY_SECONDS
        return takes_more(self._order.bounds.memory_bytes, _descendants())

    def _become_command(self) -> NoReturn:
        order = self._order
        try:
            os.setsid()
            with contextlib.suppress(OSError):
                # If memory runs out, the command must go, not the worker.
                Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
            os.dup2(self._output, 1)
            os.dup2(self._output, 2)
            _bound(order)
            if os.geteuid() == 0:
                assert order.uid is not None
                assert order.gid is not None
                self._try("capabilities", kernel.forgo_bounding_set)
                os.setgroups([])
                os.setresgid(order.gid, order.gid, order.gid)
                os.setresuid(order.uid, order.uid, order.uid)
            kernel.forgo_privileges()
            # As the uid: a root that the file server squashes may not enter it.
            os.chdir(order.cwd)
            os.umask(order.umask)
            for number in _IGNORED_BY_PYTHON:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
            shell = ["/bin/sh", "-c", order.command]
            os.execve(shell[0], shell, order.environment)  # noqa: S606 - as ordered
        except OSError as error:
            self._say(broke=str(error))
        finally:
            os._exit(1)


def _bound(order: Order) -> None:
    bounds = order.bounds
    for what, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, bounds.open_files),
        (resource.RLIMIT_NPROC, bounds.processes),
        (resource.RLIMIT_FSIZE, bounds.file_bytes),
    ):
        _, hard = resource.getrlimit(what)
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(what, (limit, limit))


def _raise_loopback() -> None:
    """Enable the loopback interface for programs of one command.

    Source: netdevice(7).
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack_from(
            "h", fcntl.ioctl(control, _SIOCGIFFLAGS, request), 16
        )
        request = struct.pack("16sh14x", b"lo", flags | _IFF_UP)
        fcntl.ioctl(control, _SIOCSIFFLAGS, request)


def _reap(command: int) -> tuple[bool, bool, int]:
    """Return whether the command has ended, whether nothing is left, and its status."""
    has_ended, its_status = False, 0
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return has_ended, True, its_status
        if pid == 0:
            return has_ended, False, its_status
        if pid == command:
            has_ended, its_status = True, status


def _signal_namespace(number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, number)


def signal_descendants(number: int) -> None:
    """Signal all our descendants, until every one has been signaled."""
    signaled: set[int] = set()
    while new := _descendants() - signaled:
        for pid in new:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        signaled |= new


def _descendants() -> set[int]:
    children: dict[int, list[int]] = {}
    for stat in list(Path("/proc").glob("[0-9]*/stat")):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found: set[int] = set()
    check_at = [os.getpid()]
    while check_at:
        born = children.get(check_at.pop(), [])
        found.update(born)
        check_at.extend(born)
    return found
