"""Baselines: a sandbox measures itself, keeps the figures, and is retired."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from provisioner.gateways.hosts.scratch import PREFIX, scratch_left
from provisioner.gateways.owners import Ids
from provisioner.lib.refusals import ActionRefused
from provisioner.qualification.actions.baselines import (
    baseline_measure,
    baseline_start,
)
from provisioner.qualification.actions.running import run_retry
from provisioner.qualification.models import QualificationRun
from provisioner.qualification.queries import values_of
from provisioner.qualification.reports import waiting_text
from provisioner.qualification.sweeps import sweep_qualifications
from provisioner.sandboxes.actions.keeping import sandbox_retire, sandbox_retry
from provisioner.sandboxes.models import Sandbox
from tests.support.browsers import browser_of
from tests.support.factories import SandboxFactory
from tests.support.jobs import settle
from tests.support.sandboxes import SandboxScene

pytestmark = pytest.mark.django_db(transaction=True)


def request(scene: SandboxScene, **given: Any) -> QualificationRun:
    asked: dict[str, Any] = {
        "profile": "branchsubmit",
        "server": scene.server,
        "name": "baseline",
        "version": scene.version,
        "host": scene.host,
        "hours": 2,
        "files": 150,
        "size": 64,
        "repeats": 1,
    }
    return baseline_start(by=scene.by, **asked | given)


def sandbox_of(run: QualificationRun) -> Sandbox:
    assert run.sandbox is not None
    return run.sandbox


@pytest.mark.integration
def test_a_baseline_measures_itself_and_leaves_its_figures_alone(
    sandbox_scene: SandboxScene,
) -> None:
    run = request(sandbox_scene)
    assert waiting_text(run) == (
        "It begins when the sandbox baseline is ready. Now: creating."
    )

    settle(sandbox_of(run))
    settle(run)
    settle(sandbox_of(run))

    assert run.state == QualificationRun.State.DONE, run.status_message
    assert values_of(run)["commit_rate"][1] > 0
    assert sandbox_of(run).state == Sandbox.State.RETIRED
    assert sandbox_scene.left() == []


@pytest.mark.integration
def test_what_a_killed_measurement_left_on_the_host_goes_with_its_sandbox(
    sandbox_scene: SandboxScene,
) -> None:
    run = request(sandbox_scene)
    sandbox = sandbox_of(run)
    owner = Ids(uid=sandbox.host.uid, gid=sandbox.host.gid)
    tag = str(sandbox.tag)
    left = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{tag}-run-{run.pk}-measure1-"))
    (left / "tree").mkdir()
    assert scratch_left(tag, owner) == [left]

    # Before its run could begin, and clear this away itself.
    sandbox_retire(by=sandbox_scene.by, sandbox=sandbox)

    assert settle(sandbox).state == Sandbox.State.RETIRED, sandbox.status_message
    assert scratch_left(tag, owner) == []


@pytest.mark.integration
def test_a_sandbox_that_fails_ends_its_run_and_goes_on_with_it_when_retried(
    sandbox_scene: SandboxScene,
) -> None:
    run, place = request(sandbox_scene), sandbox_scene.host
    sandbox = sandbox_of(run)
    Sandbox.objects.filter(pk=sandbox.pk).update(p4d_path="/nonexistent/p4d")
    settle(sandbox)
    sweep_qualifications(timestamp=0)

    run.refresh_from_db()
    assert (run.state, run.status_code) == ("failed", "sandbox_not_ready")
    assert "The sandbox baseline failed." in run.status_message
    page = browser_of(sandbox_scene.by).get(
        reverse("qualification-detail", args=[run.pk])
    )
    assert reverse("sandbox-detail", args=[sandbox.pk]) in page.text
    assert reverse("qualification-retry", args=[run.pk]) not in page.text
    with pytest.raises(ActionRefused):
        run_retry(by=sandbox_scene.by, run=run)
    Sandbox.objects.filter(pk=sandbox.pk).update(p4d_path=sandbox_scene.version.path)
    sandbox.refresh_from_db()
    sandbox_retry(by=sandbox_scene.by, sandbox=sandbox)
    settle(sandbox)
    settle(run)
    settle(sandbox)

    assert run.state == QualificationRun.State.DONE, run.status_message
    assert sandbox.state == Sandbox.State.RETIRED
    assert place.sandboxes.count() == 1


def test_a_sandbox_that_is_retired_before_ends_its_run(
    sandbox_scene: SandboxScene,
) -> None:
    run = request(sandbox_scene)

    sandbox_retire(by=sandbox_scene.by, sandbox=sandbox_of(run))
    sweep_qualifications(timestamp=0)

    run.refresh_from_db()
    assert run.state == QualificationRun.State.FAILED
    assert "The sandbox baseline is retiring." in run.status_message
    settle(sandbox_of(run))


def test_a_sandbox_for_a_baseline_without_a_profile_gets_the_usual_one() -> None:
    sandbox = SandboxFactory.create(purpose=Sandbox.Purpose.BASELINE)

    baseline_measure(sandbox)

    run = sandbox.qualification_runs.get()
    assert (run.profile, run.files, run.state) == ("branchsubmit", 70_000, "running")
    assert run.operations.get().kind == "qualification_run"


def test_what_a_baseline_cannot_be_is_refused_before_anything_is_written(
    sandbox_scene: SandboxScene,
) -> None:
    for field, given in (
        ("profile", {"profile": "guess"}),
        ("profile", {"profile": "workspaces"}),
        ("files", {"files": 0}),
        ("hosts", {"profile": "browse", "hosts": 2}),
        ("hours", {"hours": 0}),
    ):
        with pytest.raises(ActionRefused) as refused:
            request(sandbox_scene, **given)
        assert refused.value.field == field
    assert not Sandbox.objects.exists()
    assert not QualificationRun.objects.exists()
