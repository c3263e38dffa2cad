"""Run our own modules as processes that end when we do."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import provisioner

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.1
DIES_WITHIN_SECONDS = 5.0
BEAT = b"."
BEGIN = b"B"
"""What a worker that has leave answers a helper that says that it is ready."""
PUBLISH = b"P"
"""What it answers a helper that says that its archive is complete."""
YES, NO = b"Y", b"N"
"""What it answers a callback that returns a bool."""
READ_BYTES = 4096

_PACKAGE_PARENT = str(Path(provisioner.__file__).resolve().parent.parent)
_BARE_START = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def bare_command(module: str) -> list[str]:
    """Return the argv that runs a module of ours with only the standard library.

    It ignores site-packages and PYTHON* variables. So it starts in 20 ms, and no
    environment decides what runs as root. The last argument is our pid, for
    `die_with_parent`.
    """
    return [
        sys.executable,
        *("-I", "-S", "-c", _BARE_START),
        *(_PACKAGE_PARENT, module, str(os.getpid())),
    ]


def die_with_parent(parent_pid: int) -> None:
    """Ask the kernel to kill this process when `parent_pid` ends, however it ends.

    Call it after a fork or a change of uid, as both reset it.
    Source: PR_SET_PDEATHSIG in prctl(2).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    if os.getppid() != parent_pid:
        # The parent has already ended.
        os.kill(os.getpid(), signal.SIGKILL)


def forked_at() -> float:
    """Return when this process was forked, on the clock of `end_if_silent`.

    Source: starttime in proc_pid_stat(5).
    """
    stat = Path("/proc/self/stat").read_text()
    return int(stat.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")


def end_if_silent(heard_at: float, silent_seconds: float) -> float:
    """Return the time, or end this process if its worker was silent for too long.

    Time in which the machine sleeps counts.
    """
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    if now - heard_at > silent_seconds:
        os._exit(1)
    return now


def begin_with_leave(
    silent_seconds: float,
    *,
    ask: Callable[[], None],
    on_word: Callable[[bytes], None] = lambda said: None,
) -> None:
    """Wait until the worker permits this process to begin; end if it falls silent.

    It may have lost its permission since it decided to start this process. `ask`
    reports that we are ready, and only the answer to that, `BEGIN`, counts: anything
    sent earlier, and not read until now, says nothing about the present.

    The worker sends `BEAT` as long as it has permission. One that was stopped, or cut
    off from the database, sends nothing, and another worker may soon continue its step.
    So this process ends when it hears nothing, now and for the rest of its life.
    Silence is counted from the fork. `on_word` gets each message.
    """
    heard_at = forked_at()
    end_if_silent(heard_at, silent_seconds)
    may_begin = threading.Event()

    def hear(said: bytes) -> None:
        if BEGIN in said:
            may_begin.set()
        on_word(said)

    threading.Thread(
        target=_listen, args=[heard_at, silent_seconds, hear], daemon=True
    ).start()
    ask()
    may_begin.wait()


def _listen(
    heard_at: float, silent_seconds: float, on_word: Callable[[bytes], None]
) -> None:
    while True:
        ready, _, _ = select.select([0], [], [], silent_seconds / 5)
        now = end_if_silent(heard_at, silent_seconds)
        if ready:
            said = os.read(0, READ_BYTES)
            if not said:
                os._exit(1)  # the worker has ended
            heard_at = now
            on_word(said)


@contextlib.contextmanager
def ended_after(
    process: subprocess.Popen[bytes], *, grace_seconds: float = 0.0
) -> Iterator[None]:
    """Kill a process after the block, and close its pipes.

    With a grace period it is asked to end first, so that it cleans up.
    """
    try:
        yield
    finally:
        if grace_seconds:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace_seconds)
        process.kill()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            process.wait(DIES_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            # It hangs in the kernel, on a dead mount, and ends when that answers.
            process.returncode = -signal.SIGKILL


def json_lines(stdout: IO[bytes] | None) -> Iterator[dict[str, Any] | None]:
    """Yield the JSON objects that a process writes, and {} at its end.

    Yields None ten times a second in between. Names that are not UTF-8 may be escaped
    as in JSON, or not at all.
    """
    assert stdout is not None
    descriptor, pending = stdout.fileno(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if not selector.select(POLL_SECONDS):
                yield None
                continue
            data = os.read(descriptor, 1 << 16)
            if not data:
                yield {}
                return
            *complete, pending = (pending + data).split(b"\n")
            for text in complete:
                yield json.loads(os.fsdecode(text))
