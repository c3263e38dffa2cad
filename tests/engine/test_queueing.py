"""A job that waits already is not queued a second time, and nothing breaks off."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.catalog.models import Template
from provisioner.engine import states as engine_states
from provisioner.engine.deferring import defer_once
from provisioner.engine.models import Step
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_job_with_a_taken_lock_is_left_out_inside_a_transaction(
    jobs_emptied: None,
) -> None:
    job = app.configure_task("sweep_exports", queueing_lock="one")

    with transaction.atomic():
        assert defer_once(job, timestamp=0)
        assert not defer_once(job, timestamp=0)
        waiting = ProcrastinateJob.objects.filter(queueing_lock="one").count()

    assert waiting == 1


def test_a_job_is_not_seen_before_what_it_is_about(
    published_template: Template,
    jobs_emptied: None,
    run_jobs: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker that is faster than the commit would find nothing to do, and end it."""
    seen: list[bool] = []

    def look(job_id: int) -> bool:
        try:
            waiting = ProcrastinateJob.objects.filter(pk=job_id, status="todo")
            return waiting.exists()
        finally:
            connection.close()

    def check_first(step: Step, *, job_id: int | None) -> None:
        if job_id is not None:
            with ThreadPoolExecutor(1) as elsewhere:
                seen.append(elsewhere.submit(look, job_id).result())
        queue_step(step, job_id=job_id)

    queue_step = engine_states.queue_step
    monkeypatch.setattr(engine_states, "queue_step", check_first)
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = workspace_create(by=alice, template=published_template)

    run_jobs()

    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.READY, workspace.status_message
    assert len(seen) > 1
    assert not any(seen)
