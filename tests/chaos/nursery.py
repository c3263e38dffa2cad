"""Processes that start at once: forked from one that has imported everything.

A process that was killed is started again some hundred times. Most of the two seconds
of processor time that a start takes are imports, and no trial is about those.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing import connection
from pathlib import Path
from subprocess import TimeoutExpired

from django.conf import settings

WARM = "tests.chaos.warm"
BEGINS_WITHIN_SECONDS = 60.0

_nursery = multiprocessing.get_context("forkserver")


def prepare() -> None:
    """Have what is forked from now on start with everything imported."""
    _nursery.set_forkserver_preload([WARM])


class ForkedProcess:
    """A command of Python's that is run in a fork; to be used like a `Popen`.

    It leads a session, and so a group, of its own as soon as it is there.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log_path: Path,
        reads_output: bool,
    ) -> None:
        self._command = list(command)
        reader, writer = _nursery.Pipe(duplex=False)
        begun, begins = _nursery.Pipe(duplex=False)
        self._process = _nursery.Process(
            target=_run,
            args=[
                self._command,
                dict(environment),
                log_path,
                writer if reads_output else None,
                begins,
            ],
        )
        self._process.start()
        writer.close()
        begins.close()
        with begun:
            if not begun.poll(BEGINS_WITHIN_SECONDS):
                raise TimeoutExpired(self._command, BEGINS_WITHIN_SECONDS)
        if not reads_output:
            reader.close()
        self.stdout = reader if reads_output else None

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Raises: TimeoutExpired."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise TimeoutExpired(self._command, timeout or 0.0)
        return code

    def terminate(self) -> None:
        self._process.terminate()


def _run(
    command: list[str],
    environment: dict[str, str],
    log_path: Path,
    output: connection.Connection | None,
    begins: connection.Connection,
) -> None:
    """Run `python FILE …` or `python -m MODULE …` as this process; never return."""
    os.setsid()
    begins.close()
    _end_with_parent()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(settings.BASE_DIR)
    with log_path.open("ab") as log:
        os.dup2(log.fileno(), 2)
        os.dup2(log.fileno() if output is None else output.fileno(), 1)
    if output is not None:
        output.close()
    _, *arguments = command
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


def _end_with_parent() -> None:
    """Have this process asked to stop when the one that wanted it is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def wait() -> None:
        connection.wait([sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    # Signals to this process are the main thread's.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    threading.Thread(target=wait, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
