"""Workers of two releases on one database: each leaves alone what only the other has.

Ours is the older one here. What a newer one has is put into the rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.jobs import Job

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Template
from provisioner.engine.job_manager import LastingJobManager
from provisioner.engine.models import Operation, Step
from provisioner.engine.sweeps.jobs import sweep_slots, sweep_steps
from provisioner.engine.sweeps.watchdog import watchdog
from provisioner.engine.worker_pools import Pool
from provisioner.engine.workers import worker_connector
from provisioner.lib import clocks
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.jobs import queue_sweep, settle
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)

OF_THEIRS = "of_a_newer_release"


@asynccontextmanager
async def manager_of(
    knows: Callable[[str], bool],
) -> AsyncIterator[tuple[LastingJobManager, int]]:
    """Yield the job manager of a worker, and its number."""
    connector = worker_connector()
    await connector.open_async()
    try:
        pool = Pool(queues=("sweeps",), slots=1)
        manager = LastingJobManager(connector, pool=pool, knows=knows)
        yield manager, await manager.register_worker()
    finally:
        await connector.close_async()


def fetched() -> Job | None:
    """Return the job that a worker of ours gets."""

    async def fetch() -> Job | None:
        async with manager_of(app.tasks.__contains__) as (manager, worker_id):
            return await manager.fetch_job(["sweeps"], worker_id)

    return asyncio.run(fetch())


def test_a_job_of_a_task_that_only_they_have_waits_for_them(jobs_emptied: None) -> None:
    theirs = app.configure_task(OF_THEIRS, queue="sweeps", allow_unknown=True).defer()

    assert fetched() is None

    row = ProcrastinateJob.objects.get(pk=theirs)
    assert (row.status, row.attempts) == ("todo", 0)
    assert row.scheduled_at is not None
    assert row.scheduled_at > clocks.database_now()


def test_ours_behind_it_is_run(jobs_emptied: None) -> None:
    app.configure_task(OF_THEIRS, queue="sweeps", allow_unknown=True).defer()
    ours = queue_sweep(sweep_steps)

    job = fetched()

    assert job is not None
    assert job.id == ours


def test_of_two_equal_ones_that_may_wait_only_once_one_is_kept(
    jobs_emptied: None,
) -> None:
    """Another like it was queued while ours looked at the first."""
    task = app.configure_task(
        OF_THEIRS, queue="sweeps", queueing_lock=OF_THEIRS, allow_unknown=True
    )
    job_id = task.defer()

    async def leave() -> None:
        async with manager_of(lambda name: True) as (manager, worker_id):
            job = await manager.fetch_job(["sweeps"], worker_id)
            assert job is not None
            assert job.id == job_id
            await sync_to_async(task.defer)()
            await manager._leave_to_others(job)

    asyncio.run(leave())

    assert ProcrastinateJob.objects.get(task_name=OF_THEIRS).status == "todo"


@pytest.fixture
def workspace(published_template: Template) -> Workspace:
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    return workspace_create(by=alice, template=published_template)


def in_their_words(workspace: Workspace, name: str) -> None:
    """Let a step be one that only they have."""
    steps = Step.objects.filter(operation__subject=workspace.subject)
    assert steps.filter(name=name).update(name=f"{name}-of-theirs") == 1


def in_ours(workspace: Workspace, name: str) -> None:
    """Let the step be run by those who have it."""
    steps = Step.objects.filter(operation__subject=workspace.subject)
    assert steps.filter(name=f"{name}-of-theirs").update(name=name) == 1


def our_sweeps() -> None:
    sweep_slots(timestamp=0)
    sweep_steps(timestamp=0)
    watchdog(timestamp=0)


def state_of(workspace: Workspace, step: str) -> Step:
    return Step.objects.get(operation__subject=workspace.subject, name=step)


@pytest.mark.parametrize("name", ["clone", "client", "flush"])
def test_a_step_that_only_they_have_is_left_to_them(
    workspace: Workspace, run_jobs: Callable[[], None], name: str
) -> None:
    """Among the first ones, in the middle, and one that needs a slot."""
    in_their_words(workspace, name)

    run_jobs()
    our_sweeps()
    run_jobs()

    step = state_of(workspace, f"{name}-of-theirs")
    assert step.state in (Step.State.QUEUED, Step.State.WAITING)
    assert step.attempt == 0
    assert workspace.operations.get().state == Operation.State.RUNNING
    assert not Event.objects.filter(kind="operation_healed").exists()
    in_ours(workspace, name)
    assert settle(workspace).state == Workspace.State.READY


def test_an_operation_of_a_kind_that_only_they_have_disturbs_nobody(
    workspace: Workspace, run_jobs: Callable[[], None]
) -> None:
    kind = workspace.operations.get().kind
    workspace.operations.update(kind="newer_kind")

    run_jobs()
    our_sweeps()
    run_jobs()

    operation = workspace.operations.get()
    assert operation.state == Operation.State.RUNNING
    assert set(operation.steps.values_list("attempt", flat=True)) == {0}
    workspace.operations.update(kind=kind)
    assert settle(workspace).state == Workspace.State.READY


def test_pages_show_what_only_they_have_by_name(
    workspace: Workspace, signed_in: Callable[[User], Client], admin: User
) -> None:
    in_their_words(workspace, "clone")
    operation = workspace.operations.get()
    as_admin = signed_in(admin)

    for kind in (operation.kind, "newer_kind"):
        workspace.operations.update(kind=kind)
        page = as_admin.get(f"/operations/{operation.pk}/")
        assert page.status_code == 200
        assert "clone-of-theirs" in page.text
        for address in ("/operations/", f"/workspaces/{workspace.pk}/", "/workspaces/"):
            assert as_admin.get(address).status_code == 200, address
        shown = as_admin.get(f"/api/v1/operations/{operation.pk}").json()
        assert shown["kind"] == kind
