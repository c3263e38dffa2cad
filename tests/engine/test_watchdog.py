"""Whatever a crash leaves, nothing waits for ever."""

from __future__ import annotations

import pytest
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from provisioner.engine.sweeps.watchdog import watchdog
from provisioner.gateways import registry
from provisioner.workspaces.actions.retiring import workspace_retire, workspace_retry
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from tests.support.jobs import queue_sweep, run_jobs_once, settle
from tests.support.requests import workspace_create

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("jobs_emptied"),
]


def watch() -> None:
    watchdog(timestamp=0)


def end_steps(operation: Operation, state: Step.State) -> None:
    """Leave steps as a crash right after their end would."""
    Step.objects.filter(operation=operation).update(
        state=state,
        started_at=timezone.now(),
        ended_at=timezone.now(),
        error_message="It broke." if state == Step.State.FAILED else "",
        error_code="broke" if state == Step.State.FAILED else "",
    )


def test_an_operation_whose_steps_are_settled_reaches_its_goal(
    workspace: Workspace,
) -> None:
    operation = workspace.operations.get()
    end_steps(operation, Step.State.DONE)

    watch()

    operation.refresh_from_db()
    workspace.refresh_from_db()
    assert operation.state == Operation.State.SUCCEEDED
    assert workspace.state == Workspace.State.READY
    event = Event.objects.get(kind="operation_healed")
    assert (event.subject, event.via, event.actor) == ("hers", "watchdog", None)


def test_an_operation_with_a_failed_step_ends_with_its_reason(
    workspace: Workspace,
) -> None:
    operation = workspace.operations.get()
    end_steps(operation, Step.State.SKIPPED)
    Step.objects.filter(operation=operation, name="clone").update(
        state=Step.State.FAILED, error_code="full", error_message="No room."
    )

    watch()

    workspace.refresh_from_db()
    assert (workspace.state, workspace.status_code) == ("failed", "full")
    assert workspace.status_message == "No room."
    workspace_retry(by=workspace.owner, workspace=workspace)


def test_steps_that_nobody_queued_are_queued(workspace: Workspace) -> None:
    operation = workspace.operations.get()
    operation.steps.update(state=Step.State.WAITING, job_id=None)

    watch()

    queued = operation.steps.filter(state=Step.State.QUEUED)
    assert queued.exists()
    assert all(step.job_id for step in queued)
    assert Event.objects.filter(kind="operation_healed").count() == 1


def test_what_is_at_work_is_left_alone(workspace: Workspace) -> None:
    before = list(Step.objects.order_by("pk").values())
    events = Event.objects.count()

    watch()

    assert list(Step.objects.order_by("pk").values()) == before
    assert Event.objects.count() == events


@pytest.mark.parametrize("state", ["provisioning", "retiring", "restoring", "purging"])
def test_a_moving_workspace_that_nothing_moves_fails_and_can_go_on(
    state: str, workspace: Workspace
) -> None:
    operation = workspace.operations.get()
    engine_states.end_operation(operation, Operation.State.CANCELED)
    engine_states.skip_waiting_steps(operation)
    Workspace.objects.filter(pk=workspace.pk).update(state=state)

    watch()
    watch()

    workspace.refresh_from_db()
    assert (workspace.state, workspace.status_code) == ("failed", "operation_lost")
    assert workspace.events.filter(kind="workspace_failed").count() == 1
    workspace_retire(by=workspace.owner, workspace=workspace)


def test_a_template_that_nobody_builds_can_be_built_again(
    template: Template, admin: User, jobs_emptied: None
) -> None:
    build = template_build(by=admin, template=template)
    engine_states.end_operation(build, Operation.State.CANCELED)
    engine_states.skip_waiting_steps(build)

    watch()

    template.refresh_from_db()
    assert (template.state, template.status_code) == ("failed", "operation_lost")
    template_build(by=admin, template=template)


def test_steps_of_an_ended_operation_do_not_wait(workspace: Workspace) -> None:
    operation = workspace.operations.get()
    engine_states.end_operation(operation, Operation.State.CANCELED)

    watch()

    assert not operation.steps.filter(state=Step.State.WAITING).exists()


def test_it_runs_by_itself(workspace: Workspace) -> None:
    end_steps(workspace.operations.get(), Step.State.DONE)
    queue_sweep(watchdog)

    run_jobs_once(queues=["sweeps"])

    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.READY


def test_retiring_what_is_being_made_rolls_it_back(
    alice: User, published_template: Template
) -> None:
    """Canceled half way: what was made is gone again."""
    workspace = workspace_create(by=alice, template=published_template)
    run_jobs_once(queues=["storage", "perforce"])  # it is made, and not theirs yet
    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.PROVISIONING
    ontap = registry.ontap(workspace.site)
    assert ontap.find_volume(workspace.volume_name) is not None

    workspace_retire(by=alice, workspace=workspace)
    workspace = settle(workspace)

    assert workspace.state == Workspace.State.RETIRED, workspace.status_message
    assert ontap.find_volume(workspace.volume_name) is None
    perforce = registry.perforce(workspace.site.perforce_server)
    assert perforce.clients.find(workspace.client_name) is None
    provision = workspace.operations.get(kind=WorkspaceOperation.PROVISION)
    assert provision.state == Operation.State.CANCELED
