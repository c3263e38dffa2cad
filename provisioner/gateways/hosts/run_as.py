"""Call one of our functions in a process of its own, as the uid that owns the files.

The child is forked from our nursery with our own rights. It imports the function, drops
its privileges for good, then works. So the uid needs no access to the interpreter.
Secrets travel on standard input, never in argv or the environment.

The uid is that of a person, who may signal the child. So the child reports every few
seconds that it is alive. One that somebody has stopped is killed, which releases what
its step holds. Only root may trace it or read its memory, where a ticket is.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import inspect
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from provisioner.gateways import errors
from provisioner.gateways.fence import require_leave, silent_seconds
from provisioner.gateways.hosts.beats import answer, answer_callback, passing_on
from provisioner.gateways.hosts.nursery import Child, NurseryEnded, fork_child
from provisioner.gateways.hosts.processes import (
    NO,
    YES,
    begin_with_leave,
    json_lines,
)
from provisioner.gateways.owners import Owner, limit_of
from provisioner.gateways.perforce import meter
from provisioner.gateways.perforce.facet import Facet
from provisioner.gateways.perforce.meter import metered
from provisioner.gateways.perforce.types import PerforceAccount
from provisioner.lib.typed_json import from_json, to_json, without_none

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
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class ChildFailed(errors.TransientGatewayError):
    """The process ended without an answer: killed, out of memory, or too slow."""


class FunctionBroke(Exception):
    """The function raised no GatewayError: a bug."""


def run_as(
    owner: Owner,
    function: Callable[Parameters, Result],
    *args: Parameters.args,
    **kwargs: Parameters.kwargs,
) -> Result:
    """Call a function as the owner of the files it works on, and return its result.

    `function` was declared by `owners.works_on_files`: a function of a module, or a
    method of a PerforceGateway, which then signs in with that gateway's account. Its
    callbacks run here, and may raise to end it. It waits for those that return a bool:
    they may take their time if they ask for leave meanwhile. Without root it runs as
    the caller, whatever uid and gid say. The child dies with this process.

    Raises: the GatewayError that the function raised; ChildFailed (no answer);
    FunctionBroke (a bug); ValueError (uid or gid 0 or less).
    """
    if owner.uid <= 0 or owner.gid <= 0:
        raise ValueError("Nothing runs as uid or gid 0.")
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    hints = get_type_hints(function)

    def call_back(name: str, values: list[Any]) -> Any:
        [kinds, _] = get_args(without_none(hints[name]))
        return given[name](*map(from_json, kinds, values))

    order = {
        **_place_of(function),
        "arguments": {n: to_json(v) for n, v in given.items() if not callable(v)},
        "called_back": [name for name, value in given.items() if callable(value)],
        "uid": owner.uid,
        "gid": owner.gid,
    }
    answer = _answer_to(order, call_back, timeout_seconds=limit_of(function))
    result: Result = from_json(hints["return"], answer)
    return result


def _place_of(function: Callable[..., Any]) -> Json:
    """Return where the child finds the function, and the account of its gateway."""
    verbs = getattr(function, "__self__", None)
    if not isinstance(verbs, Facet):
        return {"module": function.__module__, "function": function.__name__}
    return {
        "module": type(verbs).__module__,
        "verbs": type(verbs).__name__,
        "account": to_json(verbs.account),
        "function": function.__name__,
    }


def _answer_to(
    order: Json,
    call_back: Callable[[str, list[Any]], Any],
    *,
    timeout_seconds: float,
) -> Any:
    """Return the result of the order's function, as JSON."""
    require_leave()
    child = _forked_for(order)
    watch = _Watch(child, timeout_seconds=timeout_seconds)
    watch.start()
    order |= {"parent": child.parent, "silent_seconds": silent_seconds()}
    noise = _Noise(child)
    try:
        return _converse(child, order, call_back, noise, watch)
    except ChildFailed as failure:
        if watch.killed_because:
            sentence = f"The process that worked as uid {order['uid']} "
            raise _child_failed(
                sentence + watch.killed_because, order=order, code=-signal.SIGKILL
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


def _forked_for(order: Json) -> Child:
    try:
        return fork_child()
    except NurseryEnded as ended:
        raise _child_failed(
            f"No process could be started as uid {order['uid']}.",
            order=order,
            code=-signal.SIGKILL,
        ) from ended


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
        """Whether it was killed but does not end: it hangs in the kernel."""
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

    def heard(self) -> None:
        """Note that the child said something, if only that it is alive."""
        self._heard_at = time.monotonic()

    @contextlib.contextmanager
    def not_listening(self) -> Iterator[None]:
        """Exclude time in which we do not read from the child's silence."""
        self._heard_at = None
        yield
        self.heard()

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
    call_back: Callable[[str, list[Any]], Any],
    noise: _Noise,
    watch: _Watch,
) -> Any:
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
        watch.heard()
        if "called_back" in said:
            with watch.not_listening(), passing_on(child.stdin):
                result = call_back(said["called_back"], said["values"])
            if said["waits"]:
                answer_callback(child.stdin, result=bool(result))
        elif "used" in said:
            meter.count_all(said["used"])
        elif "error" in said:
            raise _error_from(said["error"])
        elif "bug" in said:
            raise FunctionBroke(said["bug"])
        elif "result" in said:
            return said["result"]
    code = _end_of(child)
    reason = noise.end() or f"exit code {code}"
    raise _child_failed(
        f"The process that worked as uid {order['uid']} ended without an answer: "
        f"{reason}",
        order=order,
        code=code,
    )


def _child_failed(sentence: str, *, order: Json, code: int) -> ChildFailed:
    return ChildFailed(
        sentence, system="host", operation=order["function"], remote_code=str(code)
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
    """Send heartbeats until we end, whatever a library is busy with."""
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


def _call(
    order: Json,
    *,
    module: ModuleType,
    say: Callable[[Json], None],
    answers: queue.Queue[bool],
) -> Any:
    """Call the function of the order, of its module or with its account."""

    def call_back(name: str, *values: Any) -> bool | None:
        [_, returned] = get_args(without_none(hints[name]))
        waits = returned is bool
        say({"called_back": name, "values": to_json(values), "waits": waits})
        return answers.get() if waits else None

    of: Any = module
    if "verbs" in order:
        account = from_json(PerforceAccount, order["account"])
        of = getattr(module, order["verbs"]).for_own_files(account)
    function = getattr(of, order["function"])
    limit_of(function)
    hints, given = get_type_hints(function), order["arguments"]
    return function(
        **{name: from_json(hints[name], given[name]) for name in given},
        **{name: partial(call_back, name) for name in order["called_back"]},
    )


def do_as_ordered() -> None:
    """Read an order from standard input, run it, and answer on standard output."""
    order = json.loads(sys.stdin.readline())
    say = _answers()
    module = importlib.import_module(order["module"])
    _drop_privileges(uid=order["uid"], gid=order["gid"], parent=order["parent"])
    threading.Thread(target=_beat, args=[say], daemon=True).start()
    answers = queue.Queue[bool]()

    def hear(said: bytes) -> None:
        if YES in said or NO in said:
            answers.put(YES in said)

    begin_with_leave(
        order["silent_seconds"], ask=lambda: say({"ready": True}), on_word=hear
    )
    try:
        with metered() as usages:
            try:
                result = to_json(_call(order, module=module, say=say, answers=answers))
            finally:
                say({"used": meter.as_json(usages)})
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
