"""Programs of ours that start at once: forked from one that has imported everything.

Most of the two seconds of processor time that a worker takes to start are imports, and
a test that kills one after the other is not about those.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from django.conf import settings

# Forks for each line, which has a command; and tells how a child ended when asked.
WARM = """
import json, os, runpy, sys
import tests.chaos.warm
from provisioner.demo.processes import _die_with_parent

for line in sys.stdin:
    order = json.loads(line)
    if "ended" in order:
        answer = os.waitstatus_to_exitcode(os.waitpid(order["ended"], 0)[1])
    elif not (answer := os.fork()):
        os.setsid()
        _die_with_parent()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.argv = order["command"]
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.exit()
    print(answer, flush=True)
"""


class Warm:
    """Starts programs, all in the environment that it was itself started in."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log_path: Path,
        reads_output: bool,
    ) -> Forked:
        assert not reads_output
        _, *program = command
        return Forked(self, self.ask(command=program, log=str(log_path)))

    def ask(self, **order: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


class Forked:
    """One of them, to be used like a `Popen`."""

    stdout = None

    def __init__(self, warm: Warm, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._warm = warm
        self._ends = os.pidfd_open(pid)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._ends], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            self.returncode = self._warm.ask(ended=self.pid)
            os.close(self._ends)
        return self.returncode

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)


@contextlib.contextmanager
def warm(environment: Mapping[str, str]) -> Iterator[Warm]:
    """Import everything, in this environment beside our own."""
    with subprocess.Popen(
        [sys.executable, "-c", WARM],
        cwd=settings.BASE_DIR,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "provisioner.settings",
            **environment,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Warm(process)
