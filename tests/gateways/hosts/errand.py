"""What the tests call as somebody else."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from provisioner.gateways import errors
from provisioner.gateways.owners import Ids, works_on_files

Json = dict[str, Any]

OWNER = Ids(20001, 20002)

errand = works_on_files(within_seconds=30)


@errand
def look_around(tell_pid: Callable[[int], None] | None = None) -> Json:
    if tell_pid is not None:
        tell_pid(os.getpid())
    umask = os.umask(0)
    os.umask(umask)
    return {
        "uids": list(os.getresuid()),
        "gids": list(os.getresgid()),
        "groups": os.getgroups(),
        "umask": umask,
    }


@errand
def regain_root() -> bool:
    try:
        os.setresuid(0, 0, 0)
    except PermissionError:
        return False
    return True


@errand
def fail(kind: str) -> None:
    raise getattr(errors, kind)(
        "No.", system="perforce", operation="sync", remote_code="7"
    )


@errand
def break_down(what: str) -> None:
    raise KeyError(what)


@errand
def make_noise(tell: Callable[[int], None]) -> bool:
    print("noise from Python")
    sys.stdout.flush()
    os.write(1, b"noise from a library\n")
    sys.stderr.write("x" * 200_000 + "\n")
    tell(1)
    return True


@errand
def touch(path: Path) -> None:
    path.touch()


@errand
def sleep(tell_pid: Callable[[int], None], secret: str = "") -> None:
    tell_pid(os.getpid())
    time.sleep(60)


@errand
def say_nothing(seconds: float) -> bool:
    time.sleep(seconds)
    return True


@works_on_files(within_seconds=2)
def sleep_too_long(tell_pid: Callable[[int], None]) -> None:
    sleep(tell_pid)


@errand
def stop(tell_pid: Callable[[int], None]) -> None:
    tell_pid(os.getpid())
    os.kill(os.getpid(), signal.SIGSTOP)


@errand
def ask(is_so: Callable[[int], bool], notes: Callable[[int], None]) -> list[bool]:
    answers = []
    for number in range(3):
        notes(number)
        answers.append(is_so(number))
    return answers


@errand
def die() -> None:
    sys.stderr.write("first\nout of luck\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)
