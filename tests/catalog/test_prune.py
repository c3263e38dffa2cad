"""Snapshots beyond those to keep: deleted, unless a workspace or ONTAP needs them."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection
from django.utils import timezone

from provisioner.catalog.actions.templates import template_build, template_update
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.steps.pruning import delete_superfluous
from provisioner.catalog.sweeps.retention import sweep_retention
from provisioner.engine import workflow
from provisioner.engine.models import Operation, Step
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import CloneSpec
from tests.support.factories import UserFactory
from tests.support.jobs import run_jobs_once
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def keeps_one(built_template: Template) -> Template:
    """A built template of which one snapshot is to be kept."""
    return template_update(
        by=built_template.owner, template=built_template, snapshots_to_keep=1
    )


def build_again(template: Template) -> Operation:
    template.refresh_from_db()
    operation = template_build(by=template.owner, template=template)
    run_jobs_once()
    operation.refresh_from_db()
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    return operation


def on_ontap(template: Template) -> list[str]:
    template.refresh_from_db()
    ontap = registry.ontap(template.site)
    return [snapshot.name for snapshot in ontap.list_snapshots(template.volume_uuid)]


def test_the_oldest_snapshot_goes_with_the_next_build(keeps_one: Template) -> None:
    first = keeps_one.snapshots.get()

    build_again(keeps_one)

    first.refresh_from_db()
    newest = keeps_one.snapshots.get(deleted_at=None)
    assert first.deleted_at is not None
    assert on_ontap(keeps_one) == [newest.name]


def test_a_snapshot_that_a_workspace_needs_stays(keeps_one: Template) -> None:
    first = keeps_one.snapshots.get()
    workspace_create(by=UserFactory.create(username="alice"), template=keeps_one)

    build_again(keeps_one)

    first.refresh_from_db()
    assert first.deleted_at is None
    assert len(on_ontap(keeps_one)) == 2


def test_what_ontap_keeps_for_others_is_deleted_by_a_later_sweep(
    keeps_one: Template,
) -> None:
    first = keeps_one.snapshots.get()
    ontap = registry.ontap(keeps_one.site)
    clone = ontap.create_clone(
        CloneSpec(
            name=f"foreign_{keeps_one.tag.hex[:6]}x",
            parent_volume=keeps_one.volume_name,
            parent_snapshot=first.name,
            comment="somebody else's",
            uid=None,
            gid=None,
        )
    )

    build_again(keeps_one)

    assert deleted_at_of(swept(first)) is None
    # Withdrawn by an attempt that was cut short: ONTAP itself says no, and why.
    Snapshot.objects.filter(pk=first.pk).update(deleted_at=timezone.now())
    uuid = keeps_one.volume_uuid
    deleted, refused = delete_superfluous(ontap, keeps_one, volume_uuid=uuid)
    assert (deleted, list(refused)) == ([], [first.name])
    assert deleted_at_of(first) is None

    ontap.delete_volume(clone.uuid, force=True)
    assert deleted_at_of(swept(first)) is not None
    newest = keeps_one.snapshots.get(deleted_at=None)
    assert on_ontap(keeps_one) == [newest.name]


def swept(snapshot: Snapshot) -> Snapshot:
    sweep_retention(timestamp=0)
    run_jobs_once()
    return snapshot


def deleted_at_of(snapshot: Snapshot) -> dt.datetime | None:
    snapshot.refresh_from_db()
    return snapshot.deleted_at


def test_pruning_that_was_cut_short_is_finished(keeps_one: Template) -> None:
    first = keeps_one.snapshots.get()
    Snapshot.objects.filter(pk=first.pk).update(deleted_at=timezone.now())
    assert first.name in on_ontap(keeps_one)

    build_again(keeps_one)

    assert first.name not in on_ontap(keeps_one)


def test_what_a_build_left_that_failed_goes_with_the_next(keeps_one: Template) -> None:
    """Its snapshot was made, and ONTAP was away until the build gave up."""
    left = keeps_one.snapshots.get()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM catalog_snapshot WHERE id = %s", [left.pk])
    assert left.name in on_ontap(keeps_one)

    build_again(keeps_one)

    newest = keeps_one.snapshots.get()
    assert on_ontap(keeps_one) == [newest.name]


def test_pruning_again_changes_nothing(keeps_one: Template) -> None:
    operation = build_again(keeps_one)
    before = on_ontap(keeps_one)

    workflow.perform(Step.objects.get(operation=operation, name="prune"))

    assert on_ontap(keeps_one) == before
