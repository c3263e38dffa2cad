"""Runs: what is measured, what is refused, and what the figures are worth."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from provisioner.lib.refusals import ActionRefused
from provisioner.qualification.actions.running import run_retry, run_start
from provisioner.qualification.models import HostRound, QualificationRun, RunLog
from provisioner.qualification.queries import values_of
from provisioner.sites.models import PerforceServer, Site
from tests.support.jobs import perform_again, settle
from tests.support.sandboxes import SandboxScene

pytestmark = pytest.mark.django_db(transaction=True)


HELD = ("db.integed", "db.rev", "meta/commit")
SMALL: dict[str, Any] = {"files": 150, "size": 64, "repeats": 2}


@pytest.fixture
def scratch(sandbox_scene: SandboxScene) -> SandboxScene:
    """The server of the scene, marked as scratch, as the site's own."""
    scene = sandbox_scene
    PerforceServer.objects.filter(pk=scene.server.pk).update(is_scratch=True)
    Site.objects.filter(pk=scene.site.pk).update(perforce_server=scene.server)
    scene.server.refresh_from_db()
    p4 = scene.connected(scene.server.p4port)
    p4.run("configure", "set", "track=1")
    p4.disconnect()
    return scene


def measured(scene: SandboxScene, profile: str, **given: Any) -> QualificationRun:
    run = run_start(by=scene.by, profile=profile, server=scene.server, **SMALL | given)
    settle(run)
    run.refresh_from_db()
    assert run.state == QualificationRun.State.DONE, run.status_message
    return run


@pytest.mark.integration
def test_a_branch_that_is_submitted_is_measured_by_the_servers_log(
    scratch: SandboxScene,
) -> None:
    """The commit rate is that of another reader of the same log, within 1 %."""
    run = measured(scratch, "branchsubmit")

    figures = values_of(run)
    assert set(figures["files"].values()) == {150.0}
    log = gzip.decompress(RunLog.objects.get(run=run).data).decode()
    for repeat, token in HostRound.objects.filter(repeat__gt=0).values_list(
        "repeat", "token"
    ):
        held = commit_seconds(log, client=f"{token}-0")
        rate = figures["commit_rate"][repeat]
        assert abs(rate - 150 / held) <= 0.01 * rate
    assert "by the longest hold of a write lock" in run.summary


def commit_seconds(log: str, *, client: str) -> float:
    """Return the longest hold of a write lock of a commit, read line by line."""
    longest, of_commit, table = 0, False, ""
    for line in log.splitlines():
        if line.startswith("\t"):
            of_commit = f"@{client} " in line and line.endswith("'dm-CommitSubmit'")
        elif of_commit and line.startswith("--- ") and line[4] != " ":
            table = line[4:]
        elif of_commit and table.startswith(HELD) and "max lock wait+held" in line:
            longest = max(longest, int(re.findall(r"\+(\d+)ms", line)[-1]))
    assert longest
    return longest / 1000


@pytest.mark.integration
def test_every_other_profile_has_its_figures(scratch: SandboxScene) -> None:
    expected = {
        "branchsubmit-edit": {"integrate", "edit", "elapsed", "commit_rate", "files"},
        "browse": {"elapsed", "max_dirs", "max_fstat", "max_filelog", "unique"},
        "sync": {"elapsed", "rate", "mib", "files"},
        "build-load": {"client_average", "client_longest", "elapsed", "files"},
        "deltas": {"integrate_n", "sync_n"},
    }
    small = {"children": 2, "rounds": 3, "stagger_ms": 0}
    for profile, codes in expected.items():
        has_children = profile in ("browse", "sync", "build-load")
        given: dict[str, Any] = small if has_children else {}
        run = measured(scratch, profile, repeats=1, **given)

        figures = values_of(run)
        assert codes <= figures.keys(), (profile, figures)
        if profile in ("sync", "build-load"):
            assert figures["files"][1] == 300
        if profile == "build-load":
            average, longest = figures["client_average"][1], figures["client_longest"]
            assert 0 < average <= longest[1] <= figures["elapsed"][1]
        if profile == "browse":
            assert figures["browses"][1] == 6
            assert "2 children over 1 hosts browsed for" in run.summary
            assert re.search(r"maximum fstat/second: \d+ at 20", run.summary)
        [round_] = run.host_rounds.filter(repeat=1)
        assert round_.processors > 0


@pytest.mark.integration
def test_a_sandbox_is_measured_cold_and_steps_done_again_change_nothing(
    sandbox_scene: SandboxScene,
) -> None:
    scene = sandbox_scene
    sandbox = scene.ready()
    before = scene.changes_at(scene.server.p4port)

    run = run_start(
        by=scene.by, profile="branchsubmit", sandbox=sandbox, is_cold=True, **SMALL
    )
    settle(run)

    assert run.state == QualificationRun.State.DONE, run.status_message
    assert scene.changes_at(scene.server.p4port) == before
    assert len(scene.changes_at(sandbox.p4port)) == len(before) + 1 + 2
    figures = values_of(run)
    assert set(figures["commit_rate"]) == {1, 2}
    for step in run.operations.get().steps.all():
        perform_again(step)
    assert values_of(run) == figures
    assert len(scene.changes_at(sandbox.p4port)) == len(before) + 1 + 2


@pytest.mark.integration
def test_six_phases_are_measured_in_a_sandbox_which_keeps_nothing_of_them(
    sandbox_scene: SandboxScene,
) -> None:
    sandbox = sandbox_scene.ready()

    run = run_start(by=sandbox_scene.by, profile="rim", sandbox=sandbox, **SMALL)
    settle(run)

    assert run.state == QualificationRun.State.DONE, run.status_message
    figures = values_of(run)
    phases = ("lock", "populate", "integrate", "submit", "checkpoint", "rebuild")
    assert {*phases, "files"} == figures.keys()
    assert all(set(figures[phase]) == {1, 2} for phase in phases)
    assert set(figures["files"].values()) == {150.0}
    place = sandbox.volumes.get(places__role="db")
    root = Path(sandbox_scene.site.path_of(place.junction_path))
    assert not list(root.rglob("*measured*")) + list(root.rglob(".cloneyard-*"))
    p4 = sandbox_scene.connected(sandbox.p4port)
    assert p4.run("opened", "-a") == []
    assert not [each for each in p4.run("clients") if each["client"][:3] == "cyq"]
    p4.disconnect()


@pytest.mark.integration
def test_a_run_that_ended_early_keeps_what_it_has_measured(
    scratch: SandboxScene,
) -> None:
    run = run_start(
        by=scratch.by, profile="branchsubmit", server=scratch.server, **SMALL
    )
    PerforceServer.objects.filter(pk=scratch.server.pk).update(is_scratch=False)

    settle(run)

    assert run.state == QualificationRun.State.FAILED
    assert run.status_code == "server_not_scratch"
    with pytest.raises(ActionRefused, match="not marked as scratch"):
        run_retry(by=scratch.by, run=run)
    PerforceServer.objects.filter(pk=scratch.server.pk).update(is_scratch=True)
    run_retry(by=scratch.by, run=run)
    settle(run)
    assert run.state == QualificationRun.State.DONE
    assert run.host_rounds.count() == 3
