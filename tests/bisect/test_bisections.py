"""Searching for the first bad change in the lab: steps, verdicts, and what is left."""

from __future__ import annotations

import math
import os
import sqlite3
from typing import Any

import pytest

from provisioner.accounts.models import User
from provisioner.bisect.actions import (
    bisection_start,
    bisection_stop,
    bisection_verdict,
)
from provisioner.bisect.models import (
    INTERRUPTED,
    Bisection,
    BisectionOperation,
    BisectionStep,
)
from provisioner.bisect.steps import StopWatch
from provisioner.bisect.sweeps import sweep_bisections
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.steps import room
from provisioner.engine import step_run, workflow
from provisioner.engine.models import Step
from provisioner.gateways.errors import Refused, Unreachable
from provisioner.gateways.hosts import build
from provisioner.gateways.hosts.build import BuildResult
from provisioner.gateways.hosts.room import NO_SPACE, Lack
from provisioner.lib.refusals import StepRefused
from provisioner.sites.models import Site
from provisioner.workspaces.actions.retiring import workspace_retry
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.run import WorkspaceRun
from tests.support.bisections import read
from tests.support.bisections_in_lab import (
    alice,
    built,
    changes_of,
    is_left_of,
    wait_for,
)
from tests.support.factories import SnapshotFactory, TemplateFactory
from tests.support.jobs import run_jobs_once
from tests.support.lab import Lab
from tests.support.newer_snapshots import Others
from tests.support.protections import Protect, protect

__all__ = ["alice", "built", "protect"]

pytestmark = pytest.mark.django_db(transaction=True)

State = Bisection.State


def have_rows(lab: Lab) -> list[Any]:
    """Return the server's table of have lists."""
    path = lab.root / "perforce" / "db.sqlite3"
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        return database.execute("SELECT * FROM have ORDER BY 1, 2").fetchall()


def test_a_command_finds_the_first_bad_change(
    built: Template, others: Others, alice: User, lab: Lab
) -> None:
    changes = changes_of(built, others)
    before = have_rows(lab)
    Template.objects.filter(pk=built.pk).update(
        build_environment={"LICENSE": "hunter2"}, bisection_environment={"CC": "clang"}
    )

    # The file went with the sixth change, which `sync -p` alone would not do.
    bisection = wait_for(
        bisection_start(
            by=alice,
            template=built,
            good=changes[0],
            bad=changes[-1],
            command="echo at $CLONEYARD_CHANGE as $(id -u); env; cat out/all; "
            "test -e src/old.txt",
        )
    )

    assert bisection.state == State.FOUND, bisection.status_message
    assert bisection.first_bad == changes[6]
    assert bisection.status_message == (
        f"First bad change {changes[6]} by bob: by others"
    )
    steps = list(bisection.steps.all())
    assert 0 < len(steps) <= math.ceil(math.log2(8))
    for step in steps:
        assert step.verdict == ("bad" if step.change >= changes[6] else "good")
        assert step.decided_by is None
        assert "exit code" in step.reason
        assert step.workspace.state == Workspace.State.RETIRED
        assert step.workspace.client_name == ""
        assert is_left_of(step) == []
    operation = steps[0].workspace.operations.get(kind=BisectionOperation.STEP)
    run = operation.steps.get(name="run")
    said = run.log_path.read_text()
    assert said.startswith(
        f"at {steps[0].change} as {run.operation.subject.workspace.uid}"
    )
    assert said.rstrip().endswith("old"), "built, as the snapshot is"
    assert "CC=clang" in said.splitlines()
    assert "hunter2" not in said, "what builds keep secret"
    assert have_rows(lab) == before


@pytest.mark.integration
@pytest.mark.parametrize("lack", [Lack.INODES, Lack.BYTES, None])
def test_a_command_without_room_is_no_verdict_on_the_change(
    lack: Lack | None,
    built: Template,
    others: Others,
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the first change that it had no room for is called the first bad one."""
    changes = changes_of(built, others)
    monkeypatch.setattr(room, "lack_at", lambda root: lack)

    bisection = wait_for(
        bisection_start(
            by=alice,
            template=built,
            good=changes[0],
            bad=changes[-1],
            command=f"echo cc: {NO_SPACE}; echo later; exit 1",
        )
    )

    if lack is None:  # what it wrote to lies elsewhere, and has no room by design
        assert (bisection.state, bisection.first_bad) == (State.FOUND, changes[1])
        return
    step = bisection.steps.get()
    assert bisection.status_code == "waits_for_verdict"
    assert step.verdict == ""
    assert f"The volume {step.workspace.volume_name}" in bisection.status_message
    assert ("inodes" in bisection.status_message) == (lack == Lack.INODES)
    bisection_stop(by=alice, bisection=bisection)
    wait_for(bisection)


@pytest.mark.integration
def test_people_decide_skip_and_stop_though_replies_are_lost(
    built: Template, others: Others, alice: User, lab: Lab
) -> None:
    changes = changes_of(built, others)
    lab.break_perforce(
        {"command": "client", "drop": "after", "times": 1},
        {"command": "sync", "drop": "after", "times": 1},
    )
    bisection = wait_for(
        bisection_start(by=alice, template=built, good=changes[0], bad=changes[-1])
    )
    step = bisection.steps.get()
    assert bisection.status_code == "waits_for_verdict"
    assert step.workspace.state == Workspace.State.READY
    assert step.workspace.owner == alice
    assert {p.name for p in (step.workspace.path / "src").iterdir()} == {
        *("a.txt", "old.txt"),
        *(f"new{n}.txt" for n in range(1, 5)),
    }, "exactly the fourth change after the build"
    if os.geteuid() == 0:
        assert (step.workspace.path / "src/new4.txt").stat().st_uid == alice.uid

    bisection_verdict(by=alice, bisection=bisection, change=step.change, verdict="skip")
    wait_for(bisection)

    step.refresh_from_db()
    assert (step.verdict, step.decided_by) == ("skip", alice)
    assert is_left_of(step) == []
    following = bisection.steps.get(verdict="")
    assert following.change != step.change
    assert following.workspace.state == Workspace.State.READY

    bisection_stop(by=alice, bisection=bisection)
    bisection_stop(by=alice, bisection=bisection)
    wait_for(bisection)

    assert bisection.state == State.STOPPED
    following.workspace.refresh_from_db()
    assert following.workspace.state == Workspace.State.RETIRED
    assert is_left_of(following) == []


@pytest.mark.integration
def test_a_step_that_fails_waits_for_a_person_and_leaves_nothing(
    built: Template,
    others: Others,
    alice: User,
    lab: Lab,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changes = changes_of(built, others)
    lab.break_perforce({"command": "sync", "error": "no way"})
    bisection = wait_for(
        bisection_start(
            by=alice,
            template=built,
            good=changes[0],
            bad=changes[-1],
            command="kill -9 $$",
        )
    )
    assert bisection.status_code == "waits_for_verdict"
    assert "no way" in bisection.status_message
    failed = bisection.steps.get()
    assert failed.workspace.state == Workspace.State.FAILED
    assert len(is_left_of(failed)) == 2, "both are there to go on with"

    # Another clone of the same change: its command is ended by a signal.
    lab.break_perforce()
    bisection_verdict(
        by=alice, bisection=bisection, change=failed.change, verdict="again"
    )
    wait_for(bisection)

    assert is_left_of(failed) == []
    again = bisection.steps.get(verdict="")
    assert again.change == failed.change
    assert bisection.status_code == "waits_for_verdict"
    assert "signal 9" in bisection.status_message
    ran = Step.objects.get(operation__subject__workspace=again.workspace, name="run")
    with pytest.raises(StepRefused) as refusal:
        workflow.perform(ran)
    assert refusal.value.code == INTERRUPTED, "not twice in one clone"
    BisectionStep.objects.filter(pk=again.pk).update(command_started_at=None)
    monkeypatch.setattr(step_run, "VISIBLE_WITHIN_SECONDS", 0.05)
    monkeypatch.setattr(ran.operation.site, "mount_root", "/not/mounted/here")
    with pytest.raises(Unreachable):
        workflow.perform(ran)
    again.refresh_from_db()
    assert again.command_started_at is None, "where nothing ran, it may be tried again"

    bisection_stop(by=alice, bisection=bisection)
    wait_for(bisection)
    assert is_left_of(again) == []
    assert set(
        Workspace.objects.filter(bisection_step__bisection=bisection).values_list(
            "state", flat=True
        )
    ) == {Workspace.State.RETIRED}


def test_a_command_that_its_host_cannot_bound_is_run_by_a_retry(
    built: Template, others: Others, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> BuildResult:
        raise Refused("No sandbox here.", system="host", operation="run command")

    changes = changes_of(built, others)
    with monkeypatch.context() as patch:
        patch.setattr(build, "run_build", refuse)
        bisection = wait_for(
            bisection_start(
                by=alice,
                template=built,
                good=changes[-3],
                bad=changes[-1],
                command="exit 1",
            )
        )
    step = bisection.steps.get()
    assert step.workspace.state == Workspace.State.FAILED
    assert "No sandbox here." in bisection.status_message

    workspace_retry(by=alice, workspace=step.workspace)
    wait_for(bisection)
    assert (bisection.state, bisection.first_bad) == (State.FOUND, changes[-2])


def test_a_server_that_does_not_answer_is_asked_again_until_time_is_up(
    lab_site: Site, lab: Lab, alice: User, settings: Any, jobs_emptied: None
) -> None:
    template = TemplateFactory.create(site=lab_site)
    SnapshotFactory.create(template=template)
    bisection = bisection_start(by=alice, template=template, good=1, bad=9)
    lab.break_perforce({"command": "*", "drop": "before"})
    run_jobs_once()
    bisection.refresh_from_db()
    assert bisection.is_running

    settings.STEP_GIVE_UP_SECONDS = 0
    sweep_bisections(0)
    run_jobs_once()

    bisection.refresh_from_db()
    assert (bisection.state, bisection.status_code) == (
        State.FAILED,
        "changes_not_read",
    )


def test_where_nothing_was_submitted_there_is_nothing_to_find(
    published_template: Template, alice: User
) -> None:
    change = published_template.snapshots.get().change
    bisection = bisection_start(
        by=alice, template=published_template, good=change + 10**6, bad=change + 10**7
    )
    run_jobs_once()
    bisection.refresh_from_db()
    assert bisection.state == State.FAILED
    assert bisection.status_code == "nothing_submitted"
    assert not bisection.steps.exists()


def test_a_change_with_files_that_the_owner_may_not_read_is_not_tried(
    built: Template, others: Others, alice: User, protect: Protect
) -> None:
    """The snapshot that would be cloned has no such files yet."""
    good = changes_of(built, others)[-1]
    for name in ("secret/key.txt", "src/more.txt"):
        others.write(name, "x\n")
        others.submit()
    protect(f"list user alice * -{others.there}/secret/...")

    bisection = wait_for(
        bisection_start(
            by=alice, template=built, good=good, bad=changes_of(built, others)[-1]
        )
    )

    assert f"alice may not read {others.there}/secret/" in bisection.status_message
    step = bisection.steps.get()
    assert step.workspace.status_code == "not_readable"
    assert is_left_of(step) == []


def test_a_command_that_nobody_waits_for_is_stopped(
    snapshot: Snapshot, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To show progress finds that out, too, where some is due.
    monkeypatch.setattr(step_run, "PROGRESS_EVERY_SECONDS", float("inf"))
    bisection = bisection_start(
        by=alice, template=snapshot.template, good=1, bad=9, command="sleep 600"
    )
    read(bisection.pk, (3, 9))
    step = Step.objects.get(name="run", operation__kind=BisectionOperation.STEP)
    watch = StopWatch(WorkspaceRun(step), every_seconds=0)
    watch.look("running")

    bisection_stop(by=alice, bisection=bisection)

    with pytest.raises(StepRefused):
        watch.look("running")
