"""`cloneyard qualifications` and `cloneyard qualification`."""

from __future__ import annotations

import pytest
from django.utils import timezone

from provisioner.accounts.models import Team, User
from provisioner.cli import cloneyard
from provisioner.engine.models import Operation
from provisioner.qualification.models import BOUNDS, QualificationRun
from provisioner.qualification.profiles import CHOICES
from provisioner.sandboxes.models import SandboxPolicy
from tests.support.command_line import CommandLine, ended_with, printed
from tests.support.factories import SandboxFactory

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_program_names_the_profiles_and_numbers_of_the_server() -> None:
    assert set(cloneyard.PROFILES) == {code for code, _ in CHOICES}
    assert set(cloneyard.RUN_NUMBERS) == set(BOUNDS)


def test_a_sandbox_is_measured_and_its_run_shown(
    command_line: CommandLine, alice: User
) -> None:
    sandbox = SandboxFactory.create(owner=alice, name="try")
    alice.team = Team.objects.create(name="Tools")
    alice.save()
    SandboxPolicy.objects.create(team=alice.team)
    assert "Nothing was measured." in command_line.run("qualifications").stderr
    measure = ("qualification", "measure", "sync", "--no-wait", "--json")
    of_nothing = command_line.run(*measure[:3])
    ended_with(of_nothing, cloneyard.USAGE, saying="Say what is measured")
    unknown = command_line.run("qualification", "measure", "speed", "--sandbox", "try")
    ended_with(unknown, cloneyard.USAGE, saying="Choose a profile: browse")

    run = printed(
        command_line.run(
            *(*measure, "--sandbox", "try", "--cold", "--files", "700"),
            *("--repeats", "2", "--note", "before"),
        )
    )

    assert (run["state"], run["is_cold"], run["files"]) == ("running", True, 700)
    assert (run["repeats"], run["note"], run["sandbox"]) == (2, "before", sandbox.name)
    listed = command_line.run("qualifications").stdout.splitlines()[1].split()
    assert listed[:2] == [str(run["id"]), "sync"]
    shown = command_line.run("qualification", "show", str(run["id"])).stdout
    assert f"Run {run['id']}: sync of" in shown
    now = timezone.now()
    Operation.objects.update(state=Operation.State.FAILED, ended_at=now)
    QualificationRun.objects.update(
        state=QualificationRun.State.FAILED,
        status_code="broken",
        status_message="The log ended.",
        ended_at=now,
    )
    waited = command_line.run("qualification", "show", str(run["id"]), "--wait")
    ended_with(waited, cloneyard.FAILED, saying="The log ended.")
    again = command_line.run("qualification", "retry", str(run["id"]), "--no-wait")
    assert again.returncode == 0, again.stderr
    name = command_line.run("qualification", "show", "try")
    ended_with(name, cloneyard.USAGE, saying="takes an ID")


def test_a_baseline_says_what_it_needs_and_who_may(command_line: CommandLine) -> None:
    baseline = ("qualification", "baseline", "sync")
    incomplete = command_line.run(*baseline, "--of", "production")
    ended_with(incomplete, cloneyard.USAGE, saying="--host")
    place = ("--name", "base", "--version", "2024.2", "--host", "isolated")
    refused = command_line.run(*baseline, "--of", "production", *place)
    ended_with(
        refused, cloneyard.REFUSED, saying="Your team is not allowed to have sandboxes"
    )
