"""Starting our own modules as processes, and having them end when we do."""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import provisioner

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.1

_PACKAGE_PARENT = str(Path(provisioner.__file__).resolve().parent.parent)
_BARE_START = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def bare_command(module: str) -> list[str]:
    """Return the argv that runs a module of ours on the standard library alone.

    Neither site-packages nor PYTHON* variables are looked at: it starts in 20 ms, and
    nobody's environment decides what runs as root. The last argument is our pid, for
    `die_with_parent`.
    """
    return [
        sys.executable,
        *("-I", "-S", "-c", _BARE_START),
        *(_PACKAGE_PARENT, module, str(os.getpid())),
    ]


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when `parent_pid` ends, however it ends.

    Call it after a fork or a change of uid, both of which forget it.
    Source: PR_SET_PDEATHSIG in prctl(2).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    if os.getppid() != parent_pid:
        # It ended before we asked.
        os.kill(os.getpid(), signal.SIGKILL)


def json_lines(process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any] | None]:
    """Yield what a process says, None ten times a second; {} at the end of it.

    Names that are not UTF-8 may come escaped as JSON has it, or as they are.
    """
    assert process.stdout is not None
    descriptor, pending = process.stdout.fileno(), b""
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
