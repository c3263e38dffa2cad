"""Run one of our modules in a process of its own, as the uid that owns the files.

The child is forked from a nursery of ours, started as we are: it imports the module,
then drops its privileges for good, then works. So the uid needs no access to the
interpreter.
Secrets travel on standard input, never in argv or the environment.

A module that can be run this way has `run(request, show) -> result`: JSON objects in
and out, and `show(progress)` for what it is worth saying meanwhile.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from provisioner.gateways import errors
from provisioner.gateways.hosts.nursery import Child, NurseryEnded, fork_child

UMASK = 0o022
LINES_OF_STDERR_KEPT = 20
READ_WITHIN_SECONDS = 1.0
_PR_SET_PDEATHSIG = 1

Json = dict[str, Any]


class ChildFailed(errors.TransientGatewayError):
    """The process ended without an answer: killed, out of memory, or too slow."""


class ModuleBroke(Exception):
    """The module raised what is no GatewayError: a bug of ours, with its stack."""


def run_module_as(
    module: str,
    *,
    request: Json,
    uid: int,
    gid: int,
    timeout_seconds: float,
    on_progress: Callable[[Json], None] | None = None,
) -> Json:
    """Return what `module.run(request, show)` returns, having run it as uid and gid.

    Without root the caller's own uid and gid are used, whatever was asked for. The
    child dies with this process.

    Raises: the GatewayError that the module raised; ChildFailed where it did not
    answer; ModuleBroke for bugs; ValueError for uid or gid 0 or less.
    """
    if uid <= 0 or gid <= 0:
        raise ValueError("Nothing is run as uid or gid 0.")
    child = _forked_for(module, uid=uid)
    was_too_slow = threading.Event()

    def stop() -> None:
        was_too_slow.set()
        child.kill()

    too_slow = threading.Timer(timeout_seconds, stop)
    too_slow.start()
    order = {
        "module": module,
        "request": request,
        "uid": uid,
        "gid": gid,
        "parent": child.parent,
    }
    noise = _Noise(child)
    try:
        return _converse(child, order, on_progress or _unseen, noise)
    except ChildFailed as failure:
        if was_too_slow.is_set():
            raise _too_slow(order, seconds=timeout_seconds) from failure
        raise
    except BaseException:
        child.kill()
        raise
    finally:
        too_slow.cancel()
        child.wait()
        noise.end()
        for pipe in (child.stdin, child.stdout, child.stderr):
            with contextlib.suppress(OSError):
                pipe.close()


def _forked_for(module: str, *, uid: int) -> Child:
    try:
        return fork_child()
    except NurseryEnded as ended:
        raise _child_failed(
            f"No process could be started that works as uid {uid}.",
            order={"module": module},
            code=-signal.SIGKILL,
        ) from ended


def _unseen(progress: Json) -> None:
    """Nobody asked to be told."""


class _Noise:
    """What a child writes to stderr, read as it comes, of which the end is kept."""

    def __init__(self, child: Child) -> None:
        self._lines: list[bytes] = []
        self._reader = threading.Thread(target=self._read, args=[child], daemon=True)
        self._reader.start()

    def _read(self, child: Child) -> None:
        # Whatever the child has started may hold it open; then it is closed by us.
        with contextlib.suppress(OSError, ValueError):
            for line in child.stderr:
                self._lines.append(line)
                del self._lines[:-LINES_OF_STDERR_KEPT]

    def end(self) -> str:
        """Return its last line, "" without any, once the child has ended."""
        self._reader.join(READ_WITHIN_SECONDS)
        lines = b"".join(self._lines).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def _converse(
    child: Child, order: Json, on_progress: Callable[[Json], None], noise: _Noise
) -> Json:
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(json.dumps(order).encode())
        child.stdin.close()
    for line in child.stdout:
        said: Json = json.loads(line)
        if "progress" in said:
            on_progress(said["progress"])
        elif "error" in said:
            raise _error_from(said["error"])
        elif "bug" in said:
            raise ModuleBroke(said["bug"])
        else:
            result: Json = said["result"]
            return result
    code = child.wait()
    reason = noise.end() or f"exit code {code}"
    raise _child_failed(
        f"The process that worked as uid {order['uid']} ended without an answer: "
        f"{reason}",
        order=order,
        code=code,
    )


def _too_slow(order: Json, *, seconds: float) -> ChildFailed:
    return _child_failed(
        f"The process that worked as uid {order['uid']} took longer than "
        f"{seconds:,.0f} seconds and was stopped.",
        order=order,
        code=-signal.SIGKILL,
    )


def _child_failed(sentence: str, *, order: Json, code: int) -> ChildFailed:
    operation = str(order["module"]).rpartition(".")[2]
    return ChildFailed(
        sentence, system="host", operation=operation, remote_code=str(code)
    )


def _error_from(told: dict[str, str]) -> errors.GatewayError:
    """Return the error as the child raised it; unknown classes are permanent."""
    kind = getattr(errors, told["class"], errors.PermanentGatewayError)
    error: errors.GatewayError = kind(
        told["sentence"],
        system=told["system"],
        operation=told["operation"],
        remote_code=told["remote_code"],
    )
    return error


# --- in the child


def _drop_privileges(*, uid: int, gid: int, parent: int) -> None:
    """Become uid and gid for good, and die with the parent.

    The death signal comes last: the kernel clears it when credentials change.
    Source: prctl(2) PR_SET_PDEATHSIG.
    """
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    os.umask(UMASK)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it died before we asked


def _answers() -> Callable[[Json], None]:
    """Return how to answer; what a library prints goes to stderr from now on."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(message: Json) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    return say


def _general_class(error: errors.GatewayError) -> str:
    """Return the class that the parent knows; a system's own ones are kinds of it."""
    return next(
        kind.__name__
        for kind in type(error).__mro__
        if kind.__module__ == errors.__name__
    )


def do_as_ordered() -> None:
    """Read an order from standard input, carry it out, answer on standard output."""
    order = json.load(sys.stdin)
    say = _answers()
    module = importlib.import_module(order["module"])
    _drop_privileges(uid=order["uid"], gid=order["gid"], parent=order["parent"])
    try:
        result = module.run(order["request"], lambda seen: say({"progress": seen}))
    except errors.GatewayError as error:
        say(
            {
                "error": {
                    "class": _general_class(error),
                    "sentence": error.sentence,
                    "system": error.system,
                    "operation": error.operation,
                    "remote_code": error.remote_code,
                }
            }
        )
    except Exception:
        say({"bug": traceback.format_exc()})
    else:
        say({"result": result})
