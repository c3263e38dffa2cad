"""Runs that request workspaces: timed by phase, removed, and ended by what fails."""

from __future__ import annotations

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.qualification.actions.running import run_retry, run_start
from provisioner.qualification.models import QualificationRun
from provisioner.qualification.profiles import PHASES
from provisioner.qualification.queries import phases_of, values_of, workspaces_of
from provisioner.qualification.reports import waiting_text
from provisioner.qualification.sweeps import sweep_qualifications
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.jobs import perform_again, settle
from tests.support.lab import Lab

pytestmark = pytest.mark.django_db(transaction=True)

SWEEPS_AT_MOST = 12


@pytest.fixture
def admin() -> User:
    return UserFactory.create(username="admin", is_staff=True)


def run_of(
    admin: User, template: Template, *, children: int = 1, repeats: int = 1
) -> QualificationRun:
    return run_start(
        by=admin,
        profile="workspaces",
        template=template,
        children=children,
        repeats=repeats,
    )


def sweep_and_settle(run: QualificationRun) -> None:
    """Sweep once, and let all that this began come to its end."""
    sweep_qualifications(timestamp=0)
    for workspace in workspaces_of(run).exclude(state=Workspace.State.RETIRED):
        settle(workspace)
    settle(run)


def settled(run: QualificationRun) -> QualificationRun:
    for _ in range(SWEEPS_AT_MOST):
        sweep_and_settle(run)
        if not run.is_under_way:
            return run
    raise AssertionError(waiting_text(run))


def test_a_workspace_is_timed_by_phase_and_nothing_of_it_is_left(
    published_template: Template, admin: User
) -> None:
    run = run_of(admin, published_template, repeats=2)
    assert waiting_text(run) == "1 at once, repeat 1 of 2: 0 of 1 ready, 0 there."

    settled(run)

    assert run.state == QualificationRun.State.DONE, run.status_message
    assert set(PHASES) == {phase for _, phase in phases_of(run)}
    assert {found["number"] for found in phases_of(run).values()} == {2}
    figures = values_of(run)
    assert set(figures["ready_1"]) == {1, 2}
    for repeat, whole in figures["ready_1"].items():
        assert 0 < figures["clone_1"][repeat] <= whole
    assert "1 at once: ready after" in run.summary
    gone = list(workspaces_of(run))
    assert [each.state for each in gone] == [Workspace.State.RETIRED] * 2
    volumes = {each.uuid for each in registry.ontap(run.site).list_volumes()}
    assert not volumes & {each.volume_uuid for each in gone}
    clients = registry.perforce(run.perforce_server).clients
    assert clients.find(gone[0].client_name) is None
    for step in run.operations.get().steps.all():
        perform_again(step)
    assert values_of(run) == figures


@pytest.mark.integration
def test_ten_at_once_come_after_one(published_template: Template, admin: User) -> None:
    run = settled(run_of(admin, published_template, children=10))

    assert run.state == QualificationRun.State.DONE, run.status_message
    numbers = {(at, found["number"]) for (at, _), found in phases_of(run).items()}
    assert numbers == {(1, 1), (10, 10)}


def test_a_sweep_that_begins_again_requests_nothing_twice(
    published_template: Template, admin: User
) -> None:
    run = run_of(admin, published_template)

    sweep_qualifications(timestamp=0)
    sweep_qualifications(timestamp=0)

    assert workspaces_of(run).count() == 1


def test_a_run_whose_workspace_fails_says_why_and_removes_it_and_can_be_retried(
    published_template: Template, admin: User, lab: Lab
) -> None:
    run = run_of(admin, published_template)
    lab.break_ontap(
        {"method": "POST", "path": "/api/storage/volumes", "status": 400, "times": 1}
    )
    settled(run)

    assert run.state == QualificationRun.State.FAILED
    assert run.status_code == "workspaces_failed"
    assert "1 of 1 workspaces failed." in run.status_message
    lab.break_ontap()
    for workspace in workspaces_of(run):
        settle(workspace)
        assert workspace.state == Workspace.State.RETIRED
    assert not run.times.exists()

    run = run_retry(by=admin, run=run)
    settled(run)

    assert run.state == QualificationRun.State.DONE, run.status_message
    assert workspaces_of(run).count() == 2


def test_what_cannot_be_requested_ends_the_run(
    published_template: Template, admin: User
) -> None:
    run = run_of(admin, published_template)
    Template.objects.filter(pk=published_template.pk).update(
        archived_at=run.created_at, archived_by=admin
    )

    sweep_qualifications(timestamp=0)

    run.refresh_from_db()
    assert run.state == QualificationRun.State.FAILED
    assert run.status_code == "template_archived"
    assert not Operation.objects.filter(subject=run.subject).exists()
