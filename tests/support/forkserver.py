"""Programs of ours that start at once: forked from one that has imported everything.

Most of the two seconds of processor time that a worker takes to start are imports, and
a test that kills one after the other is not about those.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from provisioner.demo.processes import Output, _die_with_parent
from provisioner.gateways.hosts.nursery import Child, Nursery

WARM = "tests.chaos.warm"


class Warm:
    """Starts programs of Python, each of them in the given environment, too."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._nursery = Nursery(
            __name__, WARM, environment={**os.environ, **self._environment}
        )

    def __call__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log_path: Path,
        reads_output: bool,
    ) -> Forked:
        child = self._nursery.fork()
        order = {
            "arguments": list(command[1:]),
            "environment": {**environment, **self._environment},
            "log": str(log_path),
            "reads_output": reads_output,
            "parent": child.parent,
        }
        with child.stdin:
            child.stdin.write(json.dumps(order).encode())
        child.stderr.close()
        if not reads_output:
            child.stdout.close()
        return Forked(child, output=child.stdout if reads_output else None)

    def end(self) -> None:
        """End the programs that still run, too."""
        self._nursery.end()


class Forked:
    """One of them, to be used like a `Popen`."""

    def __init__(self, child: Child, *, output: Output | None) -> None:
        self._child = child
        self.pid = child.pid
        self.stdout = output

    @property
    def returncode(self) -> int | None:
        return self._child.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises: subprocess.TimeoutExpired."""
        return self._child.wait(timeout)

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)


@contextlib.contextmanager
def warm(environment: Mapping[str, str]) -> Iterator[Warm]:
    """Import everything, in this environment beside our own."""
    made = Warm({"DJANGO_SETTINGS_MODULE": "provisioner.settings", **environment})
    try:
        yield made
    finally:
        made.end()


def do_as_ordered() -> None:
    """In a fork, run `python FILE …` or `python -m MODULE …`."""
    order = json.load(sys.stdin)
    _die_with_parent()
    if os.getppid() != order["parent"]:
        return
    os.environ.clear()
    os.environ.update(order["environment"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (2,) if order["reads_output"] else (1, 2):
        os.dup2(log, stream)
    sys.argv = order["arguments"]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
