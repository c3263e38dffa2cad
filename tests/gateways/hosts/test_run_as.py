"""Running a module of ours as somebody else: privileges, secrets, ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from provisioner.gateways import errors, fence
from provisioner.gateways.hosts import run_as
from provisioner.gateways.hosts.nursery import Child
from provisioner.gateways.hosts.run_as import ChildFailed, FunctionBroke
from provisioner.gateways.hosts.run_as import run_as as call_as
from provisioner.gateways.owners import Ids
from tests.gateways.hosts import errand
from tests.gateways.hosts.errand import OWNER
from tests.support.processes import is_alive, wait_until_ended

SECRET = "secret-of-the-depot"
AS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="only root can become others")


@needs_root
def test_the_module_runs_as_the_uid_without_a_way_back() -> None:
    seen = call_as(OWNER, errand.look_around)

    assert seen["uids"] == [OWNER.uid] * 3
    assert seen["gids"] == [OWNER.gid] * 3
    assert seen["groups"] == []
    assert not call_as(OWNER, errand.regain_root)


@pytest.mark.skipif(AS_ROOT, reason="root does what was asked for")
def test_without_root_the_module_runs_as_the_caller() -> None:
    assert call_as(OWNER, errand.look_around)["uids"] == [os.getuid()] * 3


def test_files_are_made_with_the_usual_umask() -> None:
    assert call_as(OWNER, errand.look_around)["umask"] == 0o022


def test_secrets_are_neither_in_argv_nor_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("P4PASSWD", SECRET)
    seen: list[bytes] = []

    def check_from_outside(pid: int) -> None:
        process = Path("/proc", str(pid))
        seen.append((process / "cmdline").read_bytes())
        if AS_ROOT:
            seen.append((process / "environ").read_bytes())
        raise RuntimeError("It was there to be checked.")

    with pytest.raises(RuntimeError):
        call_as(OWNER, errand.sleep, check_from_outside, secret=SECRET)

    assert seen
    assert SECRET.encode() not in b"".join(seen)


@pytest.mark.parametrize(("uid", "gid"), [(0, 1), (1, 0), (-1, 1)])
def test_nothing_runs_as_root(uid: int, gid: int) -> None:
    with pytest.raises(ValueError, match="uid or gid 0"):
        call_as(Ids(uid, gid), errand.look_around)


@pytest.mark.parametrize(
    "kind", ["Unreachable", "Busy", "AuthFailed", "NotFound", "InUse", "Refused"]
)
def test_errors_keep_their_class_and_facts(kind: str) -> None:
    with pytest.raises(getattr(errors, kind)) as raised:
        call_as(OWNER, errand.fail, kind)

    error = raised.value
    assert isinstance(error, errors.GatewayError)
    assert (error.sentence, error.system) == ("No.", "perforce")
    assert (error.operation, error.remote_code) == ("sync", "7")


def test_what_is_not_declared_does_not_run() -> None:
    with pytest.raises(TypeError, match="not declared"):
        call_as(OWNER, os.getuid)


def test_a_bug_in_the_function_is_a_bug_here() -> None:
    with pytest.raises(FunctionBroke, match="KeyError") as raised:
        call_as(OWNER, errand.break_down, "what")

    assert not isinstance(raised.value, errors.GatewayError)


def test_noise_is_not_taken_for_an_answer() -> None:
    seen: list[int] = []

    assert call_as(OWNER, errand.make_noise, seen.append) is True
    assert seen == [1]


def test_a_function_waits_for_what_its_callback_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also for longer than a child goes on without a word of its worker."""
    noted: list[int] = []

    class Impatient(Given):
        silent_seconds = 1.5

    def is_so(number: int) -> bool:
        for _ in range(10 if number == 1 else 0):
            time.sleep(0.25)
            fence.require_leave()
        assert noted == list(range(number + 1)), "it did not go on meanwhile"
        return number == 1

    with fence.asking(Impatient()):
        assert call_as(OWNER, errand.ask, is_so, noted.append) == [False, True, False]


def test_a_child_that_is_killed_may_be_tried_again() -> None:
    with pytest.raises(ChildFailed, match="out of luck") as raised:
        call_as(OWNER, errand.die)

    assert isinstance(raised.value, errors.TransientGatewayError)
    assert raised.value.remote_code == "-9"


def test_a_child_that_is_too_slow_is_stopped() -> None:
    pids: list[int] = []

    with pytest.raises(ChildFailed, match=r"longer than 2 seconds"):
        call_as(OWNER, errand.sleep_too_long, pids.append)

    assert pids
    assert not is_alive(pids[0])


def test_a_child_that_somebody_stopped_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_as, "SILENT_AFTER_SECONDS", 0.2)
    monkeypatch.setattr(run_as, "POLL_EVERY_SECONDS", 0.02)
    pids: list[int] = []

    with pytest.raises(ChildFailed, match="was silent for 0 seconds") as raised:
        call_as(OWNER, errand.stop, pids.append)

    assert isinstance(raised.value, errors.TransientGatewayError)
    assert not is_alive(pids[0])


def test_a_child_that_only_says_that_it_lives_is_not_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_as, "SILENT_AFTER_SECONDS", 1.5)
    monkeypatch.setattr(run_as, "POLL_EVERY_SECONDS", 0.02)

    assert call_as(OWNER, errand.say_nothing, 2.5)


def test_a_child_says_that_it_lives_until_nobody_reads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_as, "BEAT_EVERY_SECONDS", 0)
    beats: list[dict[str, Any]] = []

    def say(beat: dict[str, Any]) -> None:
        beats.append(beat)
        if len(beats) == 3:
            raise BrokenPipeError

    run_as._beat(say)

    assert beats == [{"alive": True}] * 3


@needs_root
def test_nobody_but_root_reads_the_memory_of_a_child() -> None:
    seen: list[int] = []

    def look(pid: int) -> None:
        seen.append(Path("/proc", str(pid), "mem").stat().st_uid)

    call_as(OWNER, errand.look_around, look)

    assert seen == [0], "a process that can be traced belongs to its uid there"


def test_a_child_is_stopped_when_the_caller_fails() -> None:
    pids: list[int] = []

    def fail(pid: int) -> None:
        pids.append(pid)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        call_as(OWNER, errand.sleep, fail)

    assert not is_alive(pids[0])


def test_a_child_dies_with_its_parent() -> None:
    program = (
        "from provisioner.gateways.hosts.run_as import run_as; "
        "from tests.gateways.hosts import errand; "
        "run_as(errand.OWNER, errand.sleep, lambda pid: print(pid, flush=True))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=settings.BASE_DIR,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()

    wait_until_ended(child)


def test_a_child_that_does_not_die_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that waits for a dead file server is killed, and goes on waiting."""
    monkeypatch.setattr(Child, "kill", lambda child: None)
    monkeypatch.setattr(run_as, "DIES_WITHIN_SECONDS", 0.2)
    pids: list[int] = []
    began = time.monotonic()

    try:
        with pytest.raises(ChildFailed, match=r"longer than 2 seconds"):
            call_as(OWNER, errand.sleep_too_long, pids.append)
        assert time.monotonic() - began < 30
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[0], signal.SIGKILL)


class Given:
    """Leave for a worker that is taken for dead soon."""

    silent_seconds = 0.5

    def __call__(self) -> None:
        """Permit."""


def test_a_child_whose_worker_is_silent_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that was stopped, or hears nothing of the database, is silent."""
    monkeypatch.setattr(run_as, "answer", lambda stdin, said: None)

    with fence.asking(Given()), pytest.raises(ChildFailed):
        call_as(OWNER, errand.sleep, lambda pid: None)


def test_a_child_whose_worker_is_heard_goes_on() -> None:
    with (
        fence.asking(Given()),
        pytest.raises(ChildFailed, match=r"longer than 2 seconds"),
    ):
        call_as(OWNER, errand.sleep_too_long, lambda pid: None)
