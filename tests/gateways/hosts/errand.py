"""What the tests have `run_as` run: one errand per verb."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from provisioner.gateways import errors

Json = dict[str, Any]
Show = Callable[[Json], None]


def run(request: Json, show: Show) -> Json:
    return _VERBS[request["verb"]](request, show)


def _look_around(request: Json, show: Show) -> Json:
    show({"pid": os.getpid()})
    umask = os.umask(0)
    os.umask(umask)
    return {
        "uids": os.getresuid(),
        "gids": os.getresgid(),
        "groups": os.getgroups(),
        "umask": umask,
    }


def _regain_root(request: Json, show: Show) -> Json:
    try:
        os.setresuid(0, 0, 0)
    except PermissionError:
        return {"regained": False}
    return {"regained": True}


def _fail(request: Json, show: Show) -> Json:
    kind = getattr(errors, request["class"])
    raise kind("No.", system="perforce", operation="sync", remote_code="7")


def _break(request: Json, show: Show) -> Json:
    raise KeyError(request["secret"])


def _make_noise(request: Json, show: Show) -> Json:
    print("noise from Python")
    sys.stdout.flush()
    os.write(1, b"noise from a library\n")
    sys.stderr.write("x" * 200_000 + "\n")
    show({"number": 1})
    return {"done": True}


def _touch(request: Json, show: Show) -> Json:
    Path(request["path"]).touch()
    return {}


def _sleep(request: Json, show: Show) -> Json:
    show({"pid": os.getpid()})
    time.sleep(60)
    return {}


def _stop(request: Json, show: Show) -> Json:
    show({"pid": os.getpid()})
    os.kill(os.getpid(), signal.SIGSTOP)
    return {}


def _die(request: Json, show: Show) -> Json:
    sys.stderr.write("first\nout of luck\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


_VERBS = {
    "look around": _look_around,
    "regain root": _regain_root,
    "fail": _fail,
    "break": _break,
    "make noise": _make_noise,
    "sleep": _sleep,
    "touch": _touch,
    "stop": _stop,
    "die": _die,
}
