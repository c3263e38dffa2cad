"""What a developer gets who tries a worker by a bisection, asked for by the API."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.bisect.models import Bisection, BisectionOperation
from provisioner.catalog.models import Template
from provisioner.engine.models import Operation, Step
from provisioner.gateways.hosts import run_as
from provisioner.gateways.hosts.nursery import Child, fork_child
from tests.support.api_clients import api_of
from tests.support.bisections import read
from tests.support.bisections_in_lab import (
    alice,
    built,
    changes_of,
    is_left_of,
    wait_for,
)
from tests.support.newer_snapshots import Others
from tests.support.processes import pids_of

__all__ = ["alice", "built"]

pytestmark = [
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become others"),
]

# Nobody else on this machine has it: what it may signal is this test's.
UID = 60_000 + os.getpid() % 5000
STOPS_IT = """
import os, signal, sys
uid, pid = map(int, sys.argv[1:])
os.setresuid(uid, uid, uid)
print("ready", flush=True)
while True:
    try:
        os.kill(pid, signal.SIGSTOP)
        break
    except PermissionError:
        pass  # it is root's yet
"""

Ask = Callable[[str], Bisection]


@pytest.fixture
def mallory(alice: User) -> User:
    User.objects.filter(pk=alice.pk).update(uid=UID)
    alice.refresh_from_db()
    return alice


@pytest.fixture
def as_mallory(mallory: User) -> APIClient:
    return api_of(mallory)


@pytest.fixture
def ask(as_mallory: APIClient, built: Template, others: Others) -> Ask:
    """Try a change with a command, and wait until it has ended."""

    def ask(command: str) -> Bisection:
        changes = changes_of(built, others)
        answer = as_mallory.post(
            "/api/v1/bisections",
            {
                "template": built.name,
                "good": changes[-3],
                "bad": changes[-1],
                "command": command,
            },
        )
        assert answer.status_code == 202, answer.json()
        return wait_for(Bisection.objects.get(pk=answer.json()["id"]))

    return ask


def log_of(bisection: Bisection) -> str:
    step = bisection.steps.first()
    assert step is not None
    run = Step.objects.get(operation__subject__workspace=step.workspace, name="run")
    return run.log_path.read_text()


def test_a_command_gets_no_secrets_no_neighbors_and_nothing_that_stays(
    ask: Ask, built: Template, tmp_path: Path, settings: Settings
) -> None:
    Template.objects.update(build_environment={"LICENSE": "hunter2"})
    settings.SANDBOX_TMP_MB = 1
    (tmp_path / "password").write_text("hunter3")
    (tmp_path / "password").chmod(0o644)
    for parent in (tmp_path, *tmp_path.parents[:3]):
        parent.chmod(parent.stat().st_mode | 0o011)
    settings.SECRET_FILES = [str(tmp_path / "password")]
    nap = f"304.{os.getpid()}"
    root = built.site.mount_root

    bisection = ask(
        f"""
        env; cat {tmp_path}/password
        ls {root}; cat {root}/*/src/a.txt; cat {settings.LOG_DIR}/*
        ls /proc | grep -c '^[0-9]'
        (setsid sh -c 'touch up; exec sleep {nap}' &) &
        until [ -e up ]; do sleep 0.01; done
        head -c 99999999 /dev/zero > /tmp/full
        kill -9 -1; kill -STOP 1; kill -STOP {os.getpid()}
        exit 1
        """
    )

    said = log_of(bisection)
    assert bisection.state == Bisection.State.FOUND, bisection.status_message
    assert "hunter" not in said
    assert f"{built.junction_path[1:]}\n" not in said, "the template"
    assert said.count("\na\n") == 1, "its own clone"
    assert "No space left on device" in said
    assert pids_of("sleep", nap) == []
    assert [left for step in bisection.steps.all() for left in is_left_of(step)] == []


def test_what_prints_without_end_is_stopped_and_waits_for_its_person(
    ask: Ask, settings: Settings
) -> None:
    settings.STEP_LOG_MB = 1

    bisection = ask("yes; exit 1")

    assert bisection.status_code == "waits_for_verdict"
    assert "It printed more than 1 MiB and was stopped." in bisection.status_message
    assert len(log_of(bisection)) < 2**20 + 200


def test_eighteen_of_them_leave_room_for_others(
    as_mallory: APIClient, built: Template, others: Others, settings: Settings
) -> None:
    settings.BISECTIONS_PER_PERSON = 18
    changes = changes_of(built, others)
    for number in range(18):
        as_mallory.post(
            "/api/v1/bisections",
            {
                "template": built.name,
                "good": changes[0],
                "bad": changes[-1],
                "command": f"sleep 600; exit {number}",
            },
        )
    for bisection in Bisection.objects.order_by("pk"):
        read(bisection.pk, changes[1:])

    assert Operation.objects.filter(kind=BisectionOperation.STEP).count() == 2
    waiting = as_mallory.get("/api/v1/bisections").json()["results"]
    codes = [row["status_code"] for row in waiting]
    assert codes.count("too_many_commands") == 16


def test_a_helper_that_its_person_stops_holds_nothing_up(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    attackers: list[subprocess.Popen[bytes]] = []

    def fork_and_attack() -> Child:
        """The first one is stopped as soon as the person may do that."""
        child = fork_child()
        if not attackers:
            attacker = subprocess.Popen(
                [sys.executable, "-c", STOPS_IT, str(UID), str(child.pid)],
                stdout=subprocess.PIPE,
            )
            attackers.append(attacker)
            assert attacker.stdout is not None
            assert attacker.stdout.read(5) == b"ready"
        return child

    monkeypatch.setattr(run_as, "SILENT_AFTER_SECONDS", 1.5)
    monkeypatch.setattr(run_as, "POLL_EVERY_SECONDS", 0.05)
    monkeypatch.setattr(run_as, "fork_child", fork_and_attack)

    bisection = ask("exit 1")

    [attacker] = attackers
    assert attacker.wait(5) == 0, "it was stopped"
    assert attacker.stdout is not None
    attacker.stdout.close()
    assert bisection.state == Bisection.State.FOUND, bisection.status_message
    step = bisection.steps.get()
    files = Step.objects.get(operation__subject__workspace=step.workspace, name="files")
    assert files.attempt == 2
    assert files.state == Step.State.DONE
