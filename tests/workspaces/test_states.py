"""The one writer of state, and what the database refuses by itself."""

from __future__ import annotations

import itertools

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.states import TEMPLATE_TRANSITIONS
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from provisioner.lib.refusals import StateChanged, StepCutShort
from provisioner.workspaces.models import (
    Workspace,
    WorkspaceClient,
    WorkspaceOperation,
)
from provisioner.workspaces.states import (
    CLIENT_TRANSITIONS,
    WORKSPACE_TRANSITIONS,
    client_of,
    give_back_client,
    make_client_whole,
    move_client,
    set_workspace_state,
)
from tests.support.factories import purge
from tests.support.requests import workspace_create

W = Workspace.State
C = WorkspaceClient.State


def begun(workspace: Workspace) -> Step:
    """Return a step of a workspace that is at work."""
    step = Step.objects.filter(operation__subject__workspace=workspace)[0]
    engine_states.start_step(step)
    return step


def client_in(state: WorkspaceClient.State, workspace: Workspace) -> WorkspaceClient:
    is_whole = state == C.WHOLE
    return WorkspaceClient.objects.create(
        workspace=workspace,
        state=state,
        spec="" if is_whole else "Client: mine\n",
        given_back_at=timezone.now() if state in (C.DEFINED, C.FLUSHED) else None,
    )


def test_every_state_has_its_row_in_the_table() -> None:
    assert set(WORKSPACE_TRANSITIONS) == set(Workspace.State)
    assert set(CLIENT_TRANSITIONS) == set(WorkspaceClient.State)
    assert set(TEMPLATE_TRANSITIONS) == set(Template.State)
    assert set(engine_states.STEP_TRANSITIONS) == set(Step.State)


@pytest.mark.parametrize(("start", "to"), list(itertools.product(W, W)))
def test_a_workspace_moves_only_as_the_table_says(
    start: Workspace.State, to: Workspace.State, workspace: Workspace
) -> None:
    Workspace.objects.filter(pk=workspace.pk).update(
        state=start,
        status_code="because",
        ready_at=timezone.now(),
        retired_at=timezone.now() if start == W.RETIRED else None,
        trashed_at=timezone.now(),
        purge_at=timezone.now(),
    )

    if to in WORKSPACE_TRANSITIONS[start]:
        set_workspace_state(workspace, to, code="because")
        workspace.refresh_from_db()
        assert workspace.state == to
        assert workspace.events.filter(kind=f"workspace_{to.value}").exists()
    else:
        events = workspace.events.count()
        with pytest.raises(StateChanged), transaction.atomic():
            set_workspace_state(workspace, to, code="because")
        workspace.refresh_from_db()
        assert workspace.state == start
        assert workspace.events.count() == events


@pytest.mark.parametrize(("start", "to"), list(itertools.product(C, C)))
def test_a_client_moves_only_as_the_table_says(
    start: WorkspaceClient.State, to: WorkspaceClient.State, workspace: Workspace
) -> None:
    client, step = client_in(start, workspace), begun(workspace)
    fields = {"spec": "Client: mine\n", "given_back_at": timezone.now()}
    if to == C.WHOLE:
        fields = {"spec": "", "given_back_at": None}

    if to in CLIENT_TRANSITIONS[start]:
        move_client(client, to, by=step, **fields)
        assert client_of(workspace).state == to
    else:
        with pytest.raises(StateChanged), transaction.atomic():
            move_client(client, to, by=step, **fields)
        assert client_of(workspace).state == start


def test_an_attempt_that_another_has_followed_settles_nothing_of_a_client(
    workspace: Workspace,
) -> None:
    client, step = client_in(C.SETTLING, workspace), begun(workspace)
    Step.objects.filter(pk=step.pk).update(attempt=step.attempt + 1)

    with pytest.raises(StepCutShort):
        move_client(client, C.DELETED, by=step)
    with pytest.raises(StepCutShort):
        make_client_whole(client, by=step)

    assert client_of(workspace).state == C.SETTLING


def test_a_step_of_an_operation_that_was_ended_settles_nothing_of_a_client(
    workspace: Workspace,
) -> None:
    client, step = client_in(C.SETTLING, workspace), begun(workspace)
    engine_states.cancel_operation(step.operation, message="Stopped.")

    with pytest.raises(StepCutShort):
        move_client(client, C.REVERTED, by=step)


def test_a_client_is_given_back_once_and_only_where_something_is_settled(
    workspace: Workspace,
) -> None:
    client, step = client_of(workspace), begun(workspace)

    give_back_client(client, by=step)
    assert client_of(workspace).given_back_at is None
    move_client(client, C.SETTLING, by=step, spec="Client: mine\n")
    give_back_client(client, by=step)
    first = client_of(workspace).given_back_at
    give_back_client(client_of(workspace), by=step)

    assert first is not None
    assert client_of(workspace).given_back_at == first


def test_what_was_kept_before_a_client_was_whole_is_over(workspace: Workspace) -> None:
    client, step = client_in(C.FLUSHED, workspace), begun(workspace)

    make_client_whole(client, by=step)

    client = client_of(workspace)
    assert (client.state, client.spec, client.given_back_at) == (C.WHOLE, "", None)
    assert client.since == step.operation


@pytest.mark.parametrize(
    "fields",
    [
        {"state": C.WHOLE, "spec": "Client: mine\n"},
        {"state": C.SETTLING, "spec": ""},
        {"state": C.WHOLE, "given_back_at": timezone.now()},
        {"state": C.DEFINED, "spec": "Client: mine\n", "given_back_at": None},
        {"state": C.FLUSHED, "spec": "Client: mine\n", "given_back_at": None},
    ],
)
def test_the_database_refuses_impossible_clients(
    fields: dict[str, object], workspace: Workspace
) -> None:
    client_of(workspace)

    with pytest.raises(IntegrityError), transaction.atomic():
        WorkspaceClient.objects.update(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"state": W.READY, "ready_at": None},
        {"state": W.RETIRED, "retired_at": None},
        {"state": W.PROVISIONING, "retired_at": timezone.now()},
        {"state": W.FAILED, "status_code": ""},
        {"state": W.TRASHED},
        {"keep_reason": "for the release", "expires_at": timezone.now()},
        {"uid": 0},
        {"gid": 0},
    ],
)
def test_the_database_refuses_impossible_workspaces(
    fields: dict[str, object], workspace: Workspace
) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Workspace.objects.filter(pk=workspace.pk).update(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"state": Operation.State.SUCCEEDED, "ended_at": None},
        {"state": Operation.State.RUNNING, "ended_at": timezone.now()},
        {"subject": None},
    ],
)
def test_the_database_refuses_impossible_operations(
    fields: dict[str, object], workspace: Workspace
) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        workspace.operations.update(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"have_digest": "not a digest"},
        {"change": 0},
        {"client_spec": ""},
        {"ontap_uuid": ""},
    ],
)
def test_the_database_refuses_a_snapshot_without_pin(
    fields: dict[str, object], snapshot: Snapshot
) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Snapshot.objects.filter(pk=snapshot.pk).update(**fields)


def test_the_database_refuses_two_running_operations(workspace: Workspace) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Operation.objects.create(
            kind=WorkspaceOperation.RETIRE,
            subject=workspace.subject,
            requested_by=workspace.owner,
        )


def test_a_retired_name_is_free_again(workspace: Workspace, alice: User) -> None:
    set_workspace_state(workspace, W.RETIRING)
    purge(workspace)

    again = workspace_create(by=alice, template=workspace.template, name=workspace.name)

    assert again.name == workspace.name


def test_waiting_for_a_slot_and_for_a_worker_is_one_wait(workspace: Workspace) -> None:
    flush = Step.objects.get(operation__subject__workspace=workspace, name="flush")
    engine_states.queue_step(flush, job_id=None)
    since = flush.queued_at
    assert since is not None

    engine_states.queue_step(flush, job_id=7)

    assert flush.queued_at == since
    engine_states.start_step(flush)
    engine_states.retry_step_later(flush, code="busy", message="Busy.", retry_at=since)
    engine_states.queue_step(flush, job_id=8)
    assert flush.queued_at is not None
    assert flush.queued_at > since
