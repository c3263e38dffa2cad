"""Child processes that start together and never outlive their parent."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol

from django.conf import settings

STOP_WITHIN_SECONDS = 15.0
PIPE_BYTES = 65536
_PR_SET_PDEATHSIG = 1


class ProcessFailed(Exception):
    """A child ended before it was ready; the sentence names its log."""


def _die_with_parent() -> None:
    """Ask the kernel for a SIGTERM when the parent dies, however it dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Output(Protocol):
    """The end of a pipe that a process writes to."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


class Process(Protocol):
    """The part of `Popen` that we use."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    @property
    def stdout(self) -> Output | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def terminate(self) -> None: ...


class Starter(Protocol):
    """A way to start a command in a session of its own, without input."""

    def __call__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log_path: Path,
        reads_output: bool,
    ) -> Process: ...


def started_anew(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    log_path: Path,
    reads_output: bool,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a command as a new program, which ends with its parent."""
    with log_path.open("ab") as log:
        stdout: IO[bytes] | int = subprocess.PIPE if reads_output else log
        return subprocess.Popen(
            list(command),
            cwd=settings.BASE_DIR,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=log,
            # Its own group: Ctrl-C reaches only the parent, which stops it in order.
            start_new_session=True,
            preexec_fn=_die_with_parent,
            pass_fds=pass_fds,
        )


class Child:
    """One child process with its output in a log file."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log_dir: Path,
        environment: Mapping[str, str] | None = None,
        reads_output: bool = False,
        starts: int = 1,
        start: Starter = started_anew,
    ) -> None:
        log_dir.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.starts = starts
        self.log_path = log_dir / f"{name}.log"
        self._again = partial(
            Child,
            name,
            command,
            log_dir=log_dir,
            environment=environment,
            reads_output=reads_output,
            start=start,
        )
        self.process = start(
            command,
            environment={**os.environ, **(environment or {})},
            log_path=self.log_path,
            reads_output=reads_output,
        )

    def read_json_line(self, *, timeout_seconds: float) -> dict[str, Any]:
        """Wait for the line in which the child says that it is ready.

        Raises: ProcessFailed if it ends, or prints nothing in time.
        """
        said = _json_object(self._first_line(timeout_seconds=timeout_seconds))
        if said is None:
            self.stop()
            raise ProcessFailed(
                f"{self.name} did not start. The reason is in {self.log_path}:\n"
                + self.last_lines()
            )
        return said

    def _first_line(self, *, timeout_seconds: float) -> bytes:
        """Return its first line, or the part printed when time or output ends."""
        assert self.process.stdout is not None
        output = self.process.stdout.fileno()
        ends = time.monotonic() + timeout_seconds
        read = b""
        while b"\n" not in read:
            left = max(ends - time.monotonic(), 0.0)
            if not select.select([output], [], [], left)[0]:
                break
            piece = os.read(output, PIPE_BYTES)
            if not piece:
                break
            read += piece
        return read.partition(b"\n")[0]

    def last_lines(self, *, count: int = 8) -> str:
        """Return the end of its log."""
        text = self.log_path.read_text(errors="replace")
        return "\n".join(text.splitlines()[-count:])

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    @property
    def ending(self) -> str:
        """Return how it ended, in words."""
        code = self.process.returncode
        if code is not None and code < 0:
            return signal.Signals(-code).name
        return f"exit code {code}"

    def started_again(self) -> Child:
        """Start the same command again."""
        return self._again(starts=self.starts + 1)

    def stop(self, *, within_seconds: float = STOP_WITHIN_SECONDS) -> None:
        """Ask it to stop, and kill it if it does not."""
        if self.is_running:
            self.process.terminate()
            try:
                self.process.wait(within_seconds)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def _json_object(line: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def manage(*arguments: str) -> list[str]:
    """Return the command line of one of our management commands."""
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments]
