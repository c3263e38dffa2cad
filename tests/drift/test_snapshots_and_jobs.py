"""Snapshots and jobs that nobody needs, and snapshots that are gone."""

from __future__ import annotations

import time

import pytest
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.snapshot_comments import SnapshotMark, asked_text
from provisioner.drift.models import Finding
from provisioner.engine.models import Step
from provisioner.gateways.ontap import connection
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import CloneSpec
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from tests.support.drift_scene import (
    A,
    K,
    check_drift,
    long_ago,
    only,
    resolve,
    some_time_later,
)
from tests.support.lab import Lab

NO_JOB = "00000000-0000-4000-8000-000000000000"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("foreign"),
]


def test_a_snapshot_that_was_never_published_goes_by_itself(
    built_template: Template, lab_site: Site, ontap: OntapGateway
) -> None:
    long_ago()
    uuid = built_template.volume_uuid
    build = built_template.operations.latest("pk")
    mark = SnapshotMark(
        tree=built_template.volume_comment,
        change=1,
        have_count=0,
        have_digest=64 * "0",
        asked=asked_text(build),
    )
    comment = str(mark)
    ontap.create_snapshot(uuid, name="c1.b999", comment=comment)
    ontap.create_snapshot(uuid, name="c1.b998", comment="somebody's")
    ontap.create_snapshot(uuid, name="before_upgrade", comment=comment)

    found = only(check_drift(lab_site), K.SNAPSHOT_WITHOUT_ROW)
    assert (found.action, found.is_automatic) == (A.REMOVE, True)
    some_time_later()
    assert check_drift(lab_site) == []

    left = {snapshot.name for snapshot in ontap.list_snapshots(uuid)}
    published = built_template.snapshots.get().name
    assert left == {published, "c1.b998", "before_upgrade"}


def test_a_snapshot_that_does_not_say_whose_it_is_waits_for_a_click(
    built_template: Template, lab_site: Site, ontap: OntapGateway
) -> None:
    """As of a release before: it may have been published in a database that is gone."""
    long_ago()
    comment = f"{built_template.volume_comment} change=1"
    ontap.create_snapshot(built_template.volume_uuid, name="c1.b999", comment=comment)

    found = only(check_drift(lab_site), K.SNAPSHOT_WITHOUT_ROW)

    assert (found.action, found.is_automatic) == (A.REMOVE, False)


def test_a_snapshot_that_a_clone_needs_is_no_finding(
    built_template: Template, lab_site: Site, ontap: OntapGateway
) -> None:
    long_ago()
    uuid = built_template.volume_uuid
    comment = f"{built_template.volume_comment} change=1"
    ontap.create_snapshot(uuid, name="c1.b997", comment=comment)
    ontap.create_clone(
        CloneSpec(
            name="foreign_clone",
            parent_volume=built_template.volume_name,
            parent_snapshot="c1.b997",
            comment="mine",
            uid=None,
            gid=None,
        )
    )

    assert check_drift(lab_site) == []


def test_a_deleted_snapshot_that_stayed_waits_for_a_click(
    built_template: Template, lab_site: Site, ontap: OntapGateway, admin: User
) -> None:
    long_ago()
    Snapshot.objects.filter(template=built_template).update(deleted_at=timezone.now())

    found = only(check_drift(lab_site), K.SNAPSHOT_WITHOUT_ROW)
    assert not found.is_automatic
    resolve(found, admin)

    assert ontap.list_snapshots(built_template.volume_uuid) == []


def test_a_published_snapshot_that_is_gone_is_taken_off_the_offer(
    built_template: Template, lab_site: Site, ontap: OntapGateway, admin: User
) -> None:
    long_ago()
    snapshot = built_template.snapshots.get()
    ontap.delete_snapshot(built_template.volume_uuid, snapshot_uuid=snapshot.ontap_uuid)

    found = only(check_drift(lab_site), K.ROW_WITHOUT_SNAPSHOT)
    assert not found.is_automatic
    resolve(found, admin)

    snapshot.refresh_from_db()
    assert snapshot.deleted_at is not None
    assert check_drift(lab_site) == []


def test_an_ontap_job_that_nobody_waits_for_is_canceled_where_ontap_still_can(
    lab_workspace: Workspace, lab_site: Site, lab: Lab, ontap: OntapGateway, admin: User
) -> None:
    too_far_on = {"status": 400, "code": "458776", "message": "Too late.", "times": 1}
    lab.break_ontap(
        {"method": "PATCH", "path": "/api/storage/volumes/*", "job_hang_seconds": 120},
        {"method": "PATCH", "path": "/api/cluster/jobs/*", **too_far_on},
    )
    uuid = begin_to_unmount(lab_workspace, ontap)
    step = Step.objects.get(operation__subject__workspace=lab_workspace, name="mount")
    Step.objects.filter(pk=step.pk).update(ontap_job_uuid=uuid)

    found = next(f for f in check_drift(lab_site) if f.subject == uuid)
    assert (found.subject, found.action, found.workspace) == (
        uuid,
        A.REMOVE,
        lab_workspace,
    )
    assert not found.is_automatic
    resolve(found, admin)
    assert found.resolved_at is None
    assert "It continues until it ends" in found.status_message

    resolve(found, admin)
    assert found.resolution == f"The job {uuid} was canceled."
    assert uuid not in dict(unfinished_jobs(ontap))
    mounted = ontap.get_volume(lab_workspace.volume_uuid)
    assert mounted.junction_path == lab_workspace.junction_path
    ontap.cancel_job(uuid)  # again, and once it is forgotten, changes nothing
    ontap.cancel_job(NO_JOB)
    Finding.objects.filter(pk=found.pk).update(resolved_at=None)
    found.refresh_from_db()
    assert resolve(found, admin).resolution == "The job had ended."


def begin_to_unmount(workspace: Workspace, ontap: OntapGateway) -> str:
    """Start ONTAP's job without waiting for it; return its uuid."""

    class StopWaiting(Exception):
        pass

    uuids: list[str] = []

    def started(uuid: str) -> None:
        uuids.append(uuid)
        raise StopWaiting

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "RETURN_WITHIN_SECONDS", 0)
        with pytest.raises(StopWaiting):
            ontap.recording_jobs(started).unmount_volume(workspace.volume_uuid)
    ends = time.monotonic() + 30
    while (uuids[0], "running") not in unfinished_jobs(ontap):
        assert time.monotonic() < ends, unfinished_jobs(ontap)
        time.sleep(0.02)
    return uuids[0]


def unfinished_jobs(ontap: OntapGateway) -> list[tuple[str, str]]:
    return [(job.uuid, job.state) for job in ontap.list_unfinished_jobs()]
