"""Run one of our modules in a process of its own, as the uid that owns the files.

The child is forked from our nursery with our own rights. It imports the module, drops
its privileges for good, then works. So the uid needs no access to the interpreter.
Secrets travel on standard input, never in argv or the environment.

The uid is that of a person, who may signal the child. So the child reports every few
seconds that it is alive. One that somebody has stopped is killed, which releases what
its step holds. Only root may trace it or read its memory, where a ticket is.

A module that can be run this way has `run(request, show) -> result`: JSON objects in
and out, and `show(progress)` for progress.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from provisioner.gateways import errors
from provisioner.gateways.fence import require_leave, silent_seconds
from provisioner.gateways.hosts.beats import answer
from provisioner.gateways.hosts.nursery import Child, NurseryEnded, fork_child
from provisioner.gateways.hosts.processes import begin_with_leave, json_lines

UMASK = 0o022
LINES_OF_STDERR_KEPT = 20
READ_WITHIN_SECONDS = 1.0
BEAT_EVERY_SECONDS = 1.0
SILENT_AFTER_SECONDS = 60.0
POLL_EVERY_SECONDS = 1.0
DIES_WITHIN_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4

Json = dict[str, Any]


class ChildFailed(errors.TransientGatewayError):
    """The process ended without an answer: killed, out of memory, or too slow."""


class ModuleBroke(Exception):
    """The module raised something else than a GatewayError: a bug, with its stack."""


def run_module_as(
    module: str,
    *,
    request: Json,
    uid: int,
    gid: int,
    timeout_seconds: float,
    on_progress: Callable[[Json], None] | None = None,
) -> Json:
    """Run `module.run(request, show)` as uid and gid, and return its result.

    Without root it runs as the caller, whatever uid and gid say. The child dies with
    this process.

    Raises: the GatewayError that the module raised; ChildFailed (no answer);
    ModuleBroke (a bug); ValueError (uid or gid 0 or less).
    """
    if uid <= 0 or gid <= 0:
        raise ValueError("No module runs as uid or gid 0.")
    require_leave()
    child = _forked_for(module, uid=uid)
    watch = _Watch(child, timeout_seconds=timeout_seconds)
    watch.start()
    order = {
        "module": module,
        "request": request,
        "uid": uid,
        "gid": gid,
        "parent": child.parent,
        "silent_seconds": silent_seconds(),
    }
    noise = _Noise(child)
    try:
        return _converse(child, order, on_progress or _unseen, noise, watch)
    except ChildFailed as failure:
        if watch.killed_because:
            sentence = f"The process that worked as uid {uid} {watch.killed_because}"
            raise _child_failed(
                sentence, order=order, code=-signal.SIGKILL
            ) from failure
        raise
    except BaseException:
        child.kill()
        raise
    finally:
        watch.end()
        _end_of(child)
        noise.end()
        for pipe in (child.stdin, child.stdout):
            with contextlib.suppress(OSError):
                pipe.close()


def _end_of(child: Child) -> int:
    """Wait for the end of a child that was killed or has answered.

    One that hangs in the kernel, on a dead mount, ends when that answers.
    """
    try:
        return child.wait(DIES_WITHIN_SECONDS)
    except subprocess.TimeoutExpired:
        child.forget()
        return -signal.SIGKILL


def _forked_for(module: str, *, uid: int) -> Child:
    try:
        return fork_child()
    except NurseryEnded as ended:
        raise _child_failed(
            f"No process could be started as uid {uid}.",
            order={"module": module},
            code=-signal.SIGKILL,
        ) from ended


def _unseen(progress: Json) -> None:
    """Do nothing: for callers without `show`."""


class _Watch(threading.Thread):
    """Kills a child that takes too long, or that falls silent."""

    def __init__(self, child: Child, *, timeout_seconds: float) -> None:
        super().__init__(daemon=True)
        self._child = child
        self._timeout_seconds = timeout_seconds
        self._ends_at = time.monotonic() + timeout_seconds
        self._heard_at: float | None = time.monotonic()
        self._is_over = threading.Event()
        self.killed_because = ""
        self._killed_at = 0.0

    @property
    def is_hanging(self) -> bool:
        """Whether it was killed and does not end: it hangs in the kernel."""
        return bool(
            self.killed_because
            and time.monotonic() - self._killed_at > DIES_WITHIN_SECONDS
        )

    def run(self) -> None:
        while not self._is_over.wait(POLL_EVERY_SECONDS):
            now, heard_at = time.monotonic(), self._heard_at
            if now > self._ends_at:
                self._kill(
                    f"took longer than {self._timeout_seconds:,.0f} seconds and was "
                    "stopped."
                )
            elif heard_at is not None and now - heard_at > SILENT_AFTER_SECONDS:
                self._kill(
                    f"was silent for {SILENT_AFTER_SECONDS:,.0f} seconds and was "
                    "ended. Somebody stopped it with a signal, or its host is "
                    "overloaded."
                )

    @contextlib.contextmanager
    def not_listening(self) -> Iterator[None]:
        """Do not count time in which we do not read as the child's silence."""
        self._heard_at = None
        yield
        self._heard_at = time.monotonic()

    def end(self) -> None:
        self._is_over.set()
        self.join()

    def _kill(self, because: str) -> None:
        self._killed_at = time.monotonic()
        self.killed_because = because
        self._child.kill()
        self._is_over.set()


class _Noise:
    """What a child writes to stderr, of which the end is kept."""

    def __init__(self, child: Child) -> None:
        self._lines: list[bytes] = []
        self._reader = threading.Thread(target=self._read, args=[child], daemon=True)
        self._reader.start()

    def _read(self, child: Child) -> None:
        # Until the last process that has the other end is gone.
        with contextlib.suppress(OSError), child.stderr as stderr:
            for line in stderr:
                self._lines.append(line)
                del self._lines[:-LINES_OF_STDERR_KEPT]

    def end(self) -> str:
        """Return its last line, "" if there is none, after the child has ended."""
        self._reader.join(READ_WITHIN_SECONDS)
        lines = b"".join(self._lines).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def _converse(
    child: Child,
    order: Json,
    on_progress: Callable[[Json], None],
    noise: _Noise,
    watch: _Watch,
) -> Json:
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(json.dumps(order).encode() + b"\n")
        child.stdin.flush()
    for said in json_lines(child.stdout):
        if watch.is_hanging:
            break
        answer(child.stdin, said)
        if said is None:
            continue
        if not said:
            break
        with watch.not_listening():
            if "progress" in said:
                on_progress(said["progress"])
        if "progress" in said or "alive" in said or "ready" in said:
            continue
        if "error" in said:
            raise _error_from(said["error"])
        elif "bug" in said:
            raise ModuleBroke(said["bug"])
        else:
            result: Json = said["result"]
            return result
    code = _end_of(child)
    reason = noise.end() or f"exit code {code}"
    raise _child_failed(
        f"The process that worked as uid {order['uid']} ended without an answer: "
        f"{reason}",
        order=order,
        code=code,
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
    """Become uid and gid for good, closed to others of that uid; die with the parent.

    The prctl calls come last, as a change of credentials resets both settings.
    Source: prctl(2) PR_SET_PDEATHSIG, PR_SET_DUMPABLE.
    """
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    os.umask(UMASK)
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_DUMPABLE, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # the parent has already ended


def _answers() -> Callable[[Json], None]:
    """Return how to answer, and redirect the output of libraries to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    one_at_a_time = threading.Lock()

    def say(message: Json) -> None:
        with one_at_a_time:
            answers.write(json.dumps(message) + "\n")
            answers.flush()

    return say


def _beat(say: Callable[[Json], None]) -> None:
    """Report that we are alive until we end, whatever a library is busy with."""
    with contextlib.suppress(OSError):
        while True:
            say({"alive": True})
            time.sleep(BEAT_EVERY_SECONDS)


def _general_class(error: errors.GatewayError) -> str:
    """Return the base class that the parent knows, for a class of one system."""
    return next(
        kind.__name__
        for kind in type(error).__mro__
        if kind.__module__ == errors.__name__
    )


def do_as_ordered() -> None:
    """Read an order from standard input, run it, and answer on standard output."""
    order = json.loads(sys.stdin.readline())
    say = _answers()
    module = importlib.import_module(order["module"])
    _drop_privileges(uid=order["uid"], gid=order["gid"], parent=order["parent"])
    threading.Thread(target=_beat, args=[say], daemon=True).start()
    begin_with_leave(order["silent_seconds"], ask=lambda: say({"ready": True}))
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
    # At once: there is nothing to clean up, and no thread of a library to wait for.
    sys.stderr.flush()
    os._exit(0)
