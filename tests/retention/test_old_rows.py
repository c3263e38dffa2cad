"""What is over is deleted once it is old; what lives, or is referred to, stays."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.audit_log.partitions import ensure_months
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine.models import Operation, Step
from provisioner.lib import clocks
from provisioner.retention import actions
from provisioner.retention.actions import delete_old
from provisioner.retention.rules import RULES
from provisioner.retention.sweeps import sweep_old_rows
from provisioner.workspaces.models import Workspace
from tests.support.factories import SnapshotFactory

pytestmark = pytest.mark.django_db


def run(model: type[Any], *, days: int = 0) -> int:
    """Apply the rule of a table, as if so many days were over."""
    [rule] = [rule for rule in RULES if rule.model is model]
    return delete_old(rule, now=clocks.database_now() + dt.timedelta(days=days))


def retired(workspace: Workspace) -> Workspace:
    Workspace.objects.filter(pk=workspace.pk).update(
        state=Workspace.State.RETIRED, retired_at=clocks.database_now()
    )
    return workspace


# --- operations


def test_steps_of_a_retired_workspace_go_with_their_logs(ready: Workspace) -> None:
    operation = retired(ready).operations.get()
    step = operation.steps.first()
    assert step is not None
    step.log_path.parent.mkdir(parents=True, exist_ok=True)
    step.log_path.write_text("printed\n")

    assert run(Operation, days=399) == 0
    assert Step.objects.filter(operation=operation).exists()

    assert run(Operation, days=401) > 0
    assert not Step.objects.filter(operation=operation).exists()
    assert Workspace.objects.filter(pk=ready.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_logs_are_removed_once_their_rows_are(ready: Workspace) -> None:
    step = (
        retired(ready)
        .operations.get()
        .steps.select_related("operation")
        .get(name="flush")
    )
    step.log_path.parent.mkdir(parents=True, exist_ok=True)
    step.log_path.write_text("printed\n")

    run(Operation, days=401)

    assert not step.log_path.exists()


def test_operations_of_a_living_workspace_stay(ready: Workspace) -> None:
    assert run(Operation, days=4000) == 0

    assert ready.operations.get().steps.exists()


def two_builds_of(template: Template, *, by: User) -> list[Operation]:
    return [
        Operation.objects.create(
            kind="template_build",
            subject=template.subject,
            requested_by=by,
            state=Operation.State.SUCCEEDED,
            ended_at=clocks.database_now(),
        )
        for _ in range(2)
    ]


def test_of_a_template_the_newest_of_each_kind_stays(
    snapshot: Snapshot, alice: User
) -> None:
    old, newest = two_builds_of(snapshot.template, by=alice)

    run(Operation, days=401)

    assert not Operation.objects.filter(pk=old.pk).exists()
    assert Operation.objects.filter(pk=newest.pk).exists()


def test_an_operation_that_a_snapshot_refers_to_stays(
    snapshot: Snapshot, alice: User
) -> None:
    build, _newer = two_builds_of(snapshot.template, by=alice)
    Snapshot.objects.filter(pk=snapshot.pk).update(operation=build)

    run(Operation, days=401)

    assert Operation.objects.filter(pk=build.pk).exists()


# --- snapshots


def test_a_deleted_snapshot_goes_unless_a_workspace_is_of_it(ready: Workspace) -> None:
    kept, unused = ready.snapshot, SnapshotFactory.create(template=ready.template)
    there = SnapshotFactory.create(template=ready.template)
    Snapshot.objects.filter(pk__in=(kept.pk, unused.pk)).update(
        deleted_at=clocks.database_now()
    )

    assert run(Snapshot, days=401) == 1

    assert set(Snapshot.objects.all()) == {kept, there}


# --- batches, and what is kept for ever


def test_rows_are_deleted_in_batches(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "BATCH", 2)
    SnapshotFactory.create_batch(
        5, template=snapshot.template, deleted_at=clocks.database_now()
    )

    assert run(Snapshot, days=401) == 5


def test_with_no_days_nothing_is_deleted(snapshot: Snapshot, settings: Any) -> None:
    settings.HISTORY_DAYS = 0
    Snapshot.objects.filter(pk=snapshot.pk).update(deleted_at=clocks.database_now())

    assert run(Snapshot, days=4000) == 0


def test_old_jobs_that_failed_are_deleted(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, status, args) "
            "VALUES ('sweeps', 'gone', 'todo', '{}'), ('sweeps', 'gone', 'todo', '{}') "
            "RETURNING id"
        )
        cursor.execute(
            "UPDATE procrastinate_jobs SET status = 'failed' WHERE id = %s",
            [cursor.fetchone()[0]],
        )
        cursor.execute("UPDATE procrastinate_events SET at = now() - interval '1 day'")

    actions.delete_ended_jobs(now=clocks.database_now())
    assert ProcrastinateJob.objects.filter(task_name="gone").count() == 2

    later = dt.timedelta(days=django_settings.HISTORY_DAYS)
    actions.delete_ended_jobs(now=clocks.database_now() + later)
    left = ProcrastinateJob.objects.filter(task_name="gone")
    assert [job.status for job in left] == ["todo"]


# --- the audit log


def test_the_audit_log_is_kept_unless_set_and_says_what_was_deleted(
    settings: Any,
) -> None:
    long_ago = dt.datetime(2021, 3, 5, tzinfo=dt.UTC)
    ensure_months(long_ago.date(), long_ago.date())
    Event.objects.create(at=long_ago, kind="told", message="Told.")
    with connection.cursor() as cursor:  # as at the end of a transaction
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")

    sweep_old_rows(0)
    assert Event.objects.filter(kind="told").exists()

    settings.AUDIT_LOG_DAYS = 300
    sweep_old_rows(0)
    sweep_old_rows(0)
    assert not Event.objects.filter(kind="told").exists()
    said = Event.objects.get(kind="audit_log_shortened")
    assert "as AUDIT_LOG_DAYS says: 1." in said.message
    assert said.data["events"] == 1


def test_months_are_made_ahead(db: None) -> None:
    sweep_old_rows(0)

    month = clocks.database_now().date()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [f"audit_log_event_{month:%Y%m}"])
        assert cursor.fetchone()[0] is not None
