"""Forking what works as others: what children share, and what ends with what."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings

from provisioner.gateways.hosts import nursery
from provisioner.gateways.hosts.run_as import ChildFailed, run_as
from tests.gateways.hosts import errand
from tests.gateways.hosts.errand import OWNER
from tests.support.nursery import pid_of
from tests.support.processes import wait_until_ended


@pytest.fixture
def own() -> Iterator[nursery._Own]:
    """The nursery of this process, which the next test finds whole."""
    run_as(OWNER, errand.look_around)
    yield nursery._own
    run_as(OWNER, errand.look_around)


def test_all_children_come_from_one_nursery(own: nursery._Own) -> None:
    before = pid_of(own)
    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(lambda _: run_as(OWNER, errand.look_around), range(8)))

    assert len(seen) == 8
    assert pid_of(own) == before
    children = Path(f"/proc/{before}/task/{before}/children")
    while children.read_text():  # it reaps what nobody waits for any more
        time.sleep(0.01)


def test_a_nursery_that_was_killed_is_replaced(own: nursery._Own) -> None:
    before = pid_of(own)
    os.kill(before, signal.SIGKILL)
    wait_until_ended(before)

    assert run_as(OWNER, errand.look_around)

    assert pid_of(own) != before


def test_without_any_nursery_it_may_be_tried_again(
    own: nursery._Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.end()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/bin/false")
        with pytest.raises(ChildFailed, match="No process could be started"):
            run_as(OWNER, errand.look_around)

    assert run_as(OWNER, errand.look_around)


def test_a_child_ends_with_its_nursery_and_may_be_tried_again(
    own: nursery._Own,
) -> None:
    pids: list[int] = []

    def kill_the_nursery(pid: int) -> None:
        pids.append(pid)
        os.kill(pid_of(own), signal.SIGKILL)

    with pytest.raises(ChildFailed) as raised:
        run_as(OWNER, errand.sleep, kill_the_nursery)

    assert raised.value.remote_code == "-9"
    wait_until_ended(pids[0])


def test_a_child_that_has_ended_keeps_its_pid_until_it_was_waited_for() -> None:
    child = nursery.fork_child()
    child.stdin.close()  # no order: it breaks
    with child.stdout, child.stderr:
        assert child.stdout.read() == b""
        wait_until_ended(child.pid)
        assert Path(f"/proc/{child.pid}").exists()

        child.wait()

    assert child.returncode == 1
    while Path(f"/proc/{child.pid}").exists():
        time.sleep(0.01)


FORKS = """
import os
from provisioner.gateways.hosts import nursery
from provisioner.gateways.hosts.run_as import run_as
from tests.gateways.hosts import errand
from tests.gateways.hosts.errand import OWNER
from tests.support.nursery import pid_of

run_as(OWNER, errand.look_around)
if pid := os.fork():
    os.waitpid(pid, 0)
run_as(OWNER, errand.look_around)
print(pid_of(nursery._own), flush=True)
"""


def test_a_fork_of_ours_has_a_nursery_of_its_own_and_both_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )

    theirs, ours = map(int, done.stdout.split())
    assert theirs != ours
    for pid in (theirs, ours):
        wait_until_ended(pid)


def test_where_no_process_can_be_made_the_reason_is_the_systems(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both ends are here: a system that refuses is hard to come by."""

    def refuse() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    near, far = object.__new__(nursery.Nursery), object.__new__(nursery._Serving)
    near._lock, near._line = threading.Lock(), ours
    far.line, far.children = theirs, {}
    monkeypatch.setattr(os, "fork", refuse)
    before = len(os.listdir("/proc/self/fd"))
    with ours, theirs:
        far._fork([os.dup(0) for _ in range(4)], lambda: None)

        with pytest.raises(BlockingIOError):
            near.fork()

        assert len(os.listdir("/proc/self/fd")) == before
