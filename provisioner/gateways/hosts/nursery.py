"""Processes that start at once: forked from one that has already imported our modules.

An interpreter with our modules takes 0.2 s of processor time to start, and preparing or
retiring a workspace takes several. So each process that needs them starts one nursery,
with an empty environment, which forks on request. A nursery receives only descriptors:
the order travels on the child's standard input, where `do_as_ordered` of a module reads
it, usually that of `run_as`. Tests have nurseries of their own, for whole programs.

The nursery ends with the process that started it, and its children with the nursery.
"""

from __future__ import annotations

import atexit
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from provisioner.lib.garbage import spare_what_is_loaded

RUNNER = "provisioner.gateways.hosts.run_as"
# The most used modules, imported in advance.
MODULES = (
    "provisioner.gateways.hosts.transferred_files",
    "provisioner.gateways.hosts.untracked",
)
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
PROJECT = Path(__file__).resolve().parents[3]
REQUEST = b"+"
ANSWER_BYTES = 32
ENDS_WITHIN_SECONDS = 5.0


class NurseryEnded(Exception):
    """The nursery was killed; another one can be started."""


class Child:
    """A forked process, used like a `Popen`. Its pid is valid until `wait`."""

    def __init__(
        self,
        pid: int,
        *,
        parent: int,
        control: socket.socket,
        stdin: IO[bytes],
        stdout: IO[bytes],
        stderr: IO[bytes],
    ) -> None:
        self.pid = pid
        self.parent = parent
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.returncode: int | None = None
        self._control = control

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit code, or minus the signal that ended it.

        Until then its pid, which is also its process group, is not reused.

        Raises: subprocess.TimeoutExpired.
        """
        if self.returncode is None:
            if not select.select([self._control], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"pid {self.pid}", timeout or 0.0)
            said = self._control.recv(ANSWER_BYTES)
            # The nursery was killed, so the kernel killed its children.
            self.returncode = int(said) if said else -signal.SIGKILL
            self._control.close()
        return self.returncode

    def forget(self) -> None:
        """Stop waiting for a child that does not die."""
        self.returncode = -signal.SIGKILL
        self._control.close()

    def kill(self) -> None:
        """Kill it and everything that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


class Nursery:
    """The process that forks, as seen by the process that owns it.

    It imports `runner` and `modules` before it forks; its children call
    `runner.do_as_ordered()`.
    """

    def __init__(
        self, runner: str, *modules: str, environment: Mapping[str, str]
    ) -> None:
        self._lock = threading.Lock()
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, runner, *modules],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                cwd=PROJECT,
                env=environment,
                start_new_session=True,
            )

    def fork(self) -> Child:
        """Fork a child, which reads its order.

        Raises: NurseryEnded; OSError (the system cannot create a process).
        """
        control, their_control = socket.socketpair()
        stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
        theirs = (stdin[0], stdout[1], stderr[1])
        try:
            pid = self._ask(*theirs, their_control.fileno())
        except BaseException:
            control.close()
            for descriptor in (stdin[1], stdout[0], stderr[0]):
                os.close(descriptor)
            raise
        finally:
            their_control.close()
            for descriptor in theirs:
                os.close(descriptor)
        return Child(
            pid,
            parent=self._process.pid,
            control=control,
            stdin=os.fdopen(stdin[1], "wb"),
            stdout=os.fdopen(stdout[0], "rb"),
            stderr=os.fdopen(stderr[0], "rb"),
        )

    def _ask(self, *descriptors: int) -> int:
        try:
            with self._lock:
                socket.send_fds(self._line, [REQUEST], descriptors)
                answer = self._line.recv(ANSWER_BYTES)
        except OSError as error:
            raise NurseryEnded from error
        if not answer:
            raise NurseryEnded
        pid = int(answer)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return pid

    def end(self) -> None:
        """End it, and wait for that."""
        with self._lock:
            self._line.close()
        try:
            self._process.wait(ENDS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Own:
    """The nursery of this process, once it has needed one."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start without a nursery."""
        self.lock = threading.Lock()
        self.nursery: Nursery | None = None

    def get(self) -> Nursery:
        with self.lock:
            if self.nursery is None:
                self.nursery = Nursery(RUNNER, *MODULES, environment=ENVIRONMENT)
            return self.nursery

    def drop(self, ended: Nursery) -> None:
        with self.lock:
            if self.nursery is ended:
                self.nursery = None
        ended.end()

    def end(self) -> None:
        if self.nursery is not None:
            self.drop(self.nursery)


_own = _Own()
# A forked process must start its own: this one is its parent's.
os.register_at_fork(after_in_child=_own.begin)
atexit.register(_own.end)


def fork_child() -> Child:
    """Fork a child that reads its order. A killed nursery is replaced.

    Raises: NurseryEnded (the new one ended as well); OSError as Nursery.fork.
    """
    nursery = _own.get()
    try:
        return nursery.fork()
    except NurseryEnded:
        _own.drop(nursery)
        return _own.get().fork()


# --- in the nursery


@dataclass
class _Forked:
    control: socket.socket
    has_ended: bool = False


class _Serving:
    """Forks on request, reports how children end, and forgets them when told to."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self.children: dict[int, _Forked] = {}
        self.bell, self.ring = os.pipe()
        for end in (self.bell, self.ring):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self.ring, warn_on_full_buffer=False)

    def serve(self, work: Callable[[], None]) -> None:
        """Serve until the other end closes the connection."""
        while True:
            ended = {c.control: p for p, c in self.children.items() if c.has_ended}
            waited_for: list[socket.socket | int] = [self.line, self.bell, *ended]
            ready, _, _ = select.select(waited_for, [], [])
            if self.bell in ready:
                with suppress(BlockingIOError):
                    os.read(self.bell, 4096)
                self._tell_ends()
            for control in ended.keys() & set(ready):
                self._forget(ended[control])
            if self.line in ready:
                said, descriptors, _, _ = socket.recv_fds(self.line, 1, 4)
                if not said:
                    return
                self._fork(descriptors, work)

    def _fork(self, descriptors: list[int], work: Callable[[], None]) -> None:
        *streams, control = descriptors
        try:
            pid = os.fork()
        except OSError as error:
            for descriptor in descriptors:
                os.close(descriptor)
            self.line.send(str(-(error.errno or 1)).encode())
            return
        if pid == 0:
            self._be_child(streams, control, work)
        with suppress(OSError):  # it has already ended
            os.setpgid(pid, pid)
        for descriptor in streams:
            os.close(descriptor)
        self.children[pid] = _Forked(socket.socket(fileno=control))
        self.line.send(str(pid).encode())

    def _be_child(
        self, streams: list[int], control: int, work: Callable[[], None]
    ) -> NoReturn:
        """Do the work, then exit like a program."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        for descriptor in (*streams, control, self.bell, self.ring):
            os.close(descriptor)
        self.line.close()
        for other in self.children.values():
            other.control.close()
        work()
        sys.exit()

    def _tell_ends(self) -> None:
        for pid, child in self.children.items():
            how = os.WEXITED | os.WNOHANG | os.WNOWAIT
            if child.has_ended or (end := os.waitid(os.P_PID, pid, how)) is None:
                continue
            child.has_ended = True
            is_exit = end.si_code == os.CLD_EXITED
            with suppress(ConnectionError):
                child.control.send(
                    str(end.si_status if is_exit else -end.si_status).encode()
                )

    def _forget(self, pid: int) -> None:
        os.waitpid(pid, 0)
        self.children.pop(pid).control.close()


def _main() -> None:
    line = socket.socket(fileno=os.dup(0))
    runner, *_ = [importlib.import_module(name) for name in sys.argv[1:]]
    spare_what_is_loaded()
    _Serving(line).serve(runner.do_as_ordered)


if __name__ == "__main__":
    _main()
