"""Checkpoints, verifications, drills and their plans from the command line."""

from __future__ import annotations

import datetime as dt
import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

import pytest
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.cli import cloneyard
from provisioner.drills.models import Drill, DrillPlan
from provisioner.recipes.models import (
    Checkpoint,
    CheckpointPlan,
    DamagedFile,
    Verification,
    VerificationPlan,
    VerifiedDepot,
)
from provisioner.sandboxes.models import (
    P4dVersion,
    Sandbox,
    SandboxHost,
    ServerVolume,
    ServerVolumes,
)
from provisioner.sites.models import PerforceServer
from tests.support.command_line import CommandLine, ended_with, printed
from tests.support.factories import CheckpointFactory, SandboxHostFactory

pytestmark = pytest.mark.django_db(transaction=True)

ENDS_WITHIN_SECONDS = 60.0
Found = TypeVar("Found")


@pytest.fixture
def as_admin(command_line: CommandLine, admin: User) -> CommandLine:
    _, secret = token_create(by=admin)
    command_line.environment["CLONEYARD_TOKEN"] = secret
    return command_line


@pytest.fixture
def host() -> SandboxHost:
    return SandboxHostFactory.create(name="isolated")


@pytest.fixture
def server(host: SandboxHost) -> PerforceServer:
    server: PerforceServer = host.site.perforce_server
    volumes = ServerVolumes.objects.create(server=server, site=host.site)
    for role in ("db", "journal", "depot"):
        ServerVolume.objects.create(of=volumes, role=role, volume="p4", path=role)
    P4dVersion.objects.create(release="2024.2", path="/opt/p4d")
    return server


def until(find: Callable[[], Found | None]) -> Found:
    """Return what another process writes."""
    ends = time.monotonic() + ENDS_WITHIN_SECONDS
    while (found := find()) is None:
        assert time.monotonic() < ends
        time.sleep(0.1)
    return found


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    said, complained = process.communicate(timeout=ENDS_WITHIN_SECONDS)
    return process.returncode, said, complained


@pytest.mark.parametrize(
    "words",
    [
        ["checkpoints"],
        ["checkpoint-plans"],
        ["checkpoint", "production"],
        ["verification-plans"],
        ["verify", "production"],
        ["drills"],
        ["drill-plans"],
        ["drill", "production"],
    ],
)
def test_they_are_for_administrators(
    words: list[str], command_line: CommandLine
) -> None:
    hers = command_line.run(*words)
    ended_with(hers, cloneyard.REFUSED, saying="You may not do this")


def test_a_plan_is_made_shown_and_switched_off(
    as_admin: CommandLine, server: PerforceServer
) -> None:
    assert "No plans." in as_admin.run("checkpoint-plans").stderr
    place = ("--host", "isolated", "--version", "2024.2")
    nowhere = as_admin.run("verification-plans", server.name, "--on")
    ended_with(nowhere, cloneyard.REFUSED, saying="no host or no version")

    [made] = printed(
        as_admin.run(
            *("checkpoint-plans", server.name, *place, "--directory", "/checkpoints"),
            *("--cron", "0 1 * * *", "--daily", "3", "--on", "--json"),
        )
    )

    assert (made["server"], made["is_on"], made["keep_daily"]) == (server.name, True, 3)
    listed = as_admin.run("checkpoint-plans", server.name).stdout
    assert "on    0 1 * * * UTC  isolated  2024.2" in listed
    as_admin.run("checkpoint-plans", server.name, "--off")
    plan = CheckpointPlan.objects.get()
    assert (plan.is_on, plan.keep_daily, plan.cron) == (False, 3, "0 1 * * *")
    verified = as_admin.run("verification-plans", server.name, *place, "--on")
    assert verified.returncode == 0, verified.stderr
    assert VerificationPlan.objects.get().is_on
    of_none = as_admin.run("verification-plans", "--on")
    ended_with(of_none, cloneyard.USAGE, saying="Name the server")
    elsewhere = as_admin.run("verification-plans", "elsewhere", "--on")
    ended_with(elsewhere, cloneyard.NOT_FOUND, saying="no Perforce server “elsewhere”")
    wrong = as_admin.run("checkpoint-plans", server.name, "--cron", "each night")
    ended_with(wrong, cloneyard.REFUSED, saying="five fields")


def test_checkpoints_are_listed_with_those_that_are_gone(
    as_admin: CommandLine,
) -> None:
    assert "No checkpoints." in as_admin.run("checkpoints").stderr
    kept: Checkpoint = CheckpointFactory.create()
    gone = CheckpointFactory.create(
        removed_at=timezone.now(), removed_because="Kept long enough."
    )
    of_it = ("checkpoints", kept.sandbox.perforce_server.name)

    assert kept.path in as_admin.run(*of_it).stdout
    assert gone.path not in as_admin.run("checkpoints").stdout
    assert "Kept long enough." in as_admin.run("checkpoints", "--all").stdout
    assert "No checkpoints." in as_admin.run("checkpoints", "elsewhere").stderr


def test_a_checkpoint_is_waited_for(
    as_admin: CommandLine, server: PerforceServer
) -> None:
    place = ("--host", "isolated", "--version", "2024.2")
    as_admin.run("checkpoint-plans", server.name, *place, "--directory", "/checkpoints")
    making = as_admin.start(*as_admin.command("checkpoint", server.name))
    sandbox = until(Sandbox.objects.first)
    CheckpointFactory.create(sandbox=sandbox, path="/checkpoints/it.gz", change=4711)
    Sandbox.objects.update(state=Sandbox.State.RETIRED, retired_at=timezone.now())

    code, said, _ = ended(making)

    assert code == cloneyard.DONE
    assert said == "Kept on isolated as /checkpoints/it.gz, proven, at change 4711.\n"
    begun = as_admin.run("checkpoint", server.name, "--no-wait")
    assert f"makes a checkpoint of {server.name}" in begun.stdout
    again = as_admin.run("checkpoint", server.name, "--no-wait")
    ended_with(again, cloneyard.REFUSED, saying="made for this just now")


def test_a_checkpoint_that_fails_says_why(
    as_admin: CommandLine, server: PerforceServer
) -> None:
    place = ("--host", "isolated", "--version", "2024.2")
    as_admin.run("checkpoint-plans", server.name, *place, "--directory", "/checkpoints")
    making = as_admin.start(*as_admin.command("checkpoint", server.name))
    until(Sandbox.objects.first)
    Sandbox.objects.update(
        state=Sandbox.State.FAILED,
        status_code="sandbox_failed",
        status_message="The dump failed.",
    )

    code, said, complained = ended(making)

    assert (code, said) == (cloneyard.FAILED, "")
    assert "The dump failed." in complained


def test_damage_that_a_verification_finds_is_told_by_the_exit_code(
    as_admin: CommandLine, server: PerforceServer
) -> None:
    place = ("--host", "isolated", "--version", "2024.2")
    as_admin.run("verification-plans", server.name, *place)
    verifying = as_admin.start(*as_admin.command("verify", server.name, "--json"))
    sandbox = until(Sandbox.objects.first)
    made = Verification.objects.create(sandbox=sandbox, ended_at=timezone.now())
    row = VerifiedDepot.objects.create(
        verification=made, name="depot", kind="local", seconds=3, missing=1
    )
    DamagedFile.objects.create(
        depot=row, path="//depot/one", revision=2, change=7, status="missing"
    )
    Sandbox.objects.update(state=Sandbox.State.RETIRED, retired_at=timezone.now())

    code, said, complained = ended(verifying)

    assert code == cloneyard.FAILED
    assert "0 damaged revisions, 1 lost" in complained
    assert '"missing": 1' in said
    listed = as_admin.run("verifications", server.name).stdout.splitlines()[1].split()
    assert listed[:2] == [str(made.pk), server.name]
    damaged = as_admin.run("verifications", "--id", str(made.pk)).stdout
    assert "missing  depot  7       //depot/one#2" in damaged
    of_none = as_admin.run("verifications", "--id", "0")
    ended_with(of_none, cloneyard.NOT_FOUND, saying="")


def test_a_drill_is_planned_made_and_judged(
    as_admin: CommandLine, server: PerforceServer
) -> None:
    SandboxHostFactory.create(name="spare")
    at = ("drill-plans", server.name, "--host", "spare", "--version", "2024.2")
    unclear = as_admin.run(*at, "--replica", "p4")
    ended_with(unclear, cloneyard.USAGE, saying="VOLUME=REPLICA")
    forgotten = as_admin.run(*at)
    ended_with(forgotten, cloneyard.REFUSED, saying="Name what SnapMirror fills")
    planned = as_admin.run(*at, "--replica", "p4=p4_dr", "--oldest-hours", "5")
    assert planned.returncode == 0, planned.stderr
    assert DrillPlan.objects.get().replicas == {"p4": "p4_dr"}
    drilling = as_admin.start(*as_admin.command("drill", server.name))
    drill = until(Drill.objects.first)
    now = drill.requested_at
    Drill.objects.update(
        copy_of=now - dt.timedelta(hours=9),
        answered_at=now + dt.timedelta(seconds=40),
        ended_at=now + dt.timedelta(seconds=41),
        change=4711,
        finding="The copy was 9 hours old, and may be 5 hours.",
    )

    code, _, complained = ended(drilling)

    assert code == cloneyard.FAILED
    assert "The copy was 9 hours old" in complained
    Sandbox.objects.update(state=Sandbox.State.RETIRED, retired_at=timezone.now())
    listed = as_admin.run("drills", server.name).stdout
    assert "Old copy  32400 s   40 s      4711" in listed
    Drill.objects.update(finding="")
    assert "Passed" in as_admin.run("drills").stdout
    begun = as_admin.run("drill", server.name, "--no-wait")
    assert "was started at" in begun.stdout
    assert "No disaster drills." in as_admin.run("drills", "elsewhere").stderr
