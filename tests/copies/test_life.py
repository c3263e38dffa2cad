"""The life of a copy: made, transferred, held back, deleted, in the lab."""

from __future__ import annotations

import pytest

from provisioner.accounts.models import User
from provisioner.copies.actions import copy_rule_delete, copy_transfer
from provisioner.copies.models import WorkspaceCopy
from provisioner.copies.queries import RETRIED_AFTER, obstacle_of, places_of
from provisioner.copies.sweeps import tend_all
from provisioner.lab.ontap import records
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused
from provisioner.mirrors.actions import mirror_delete
from provisioner.mirrors.models import MirroredSnapshot
from provisioner.workspaces.actions.retiring import workspace_purge, workspace_retire
from provisioner.workspaces.models import Workspace
from tests.support.copies import CopyScene
from tests.support.jobs import perform_again, settle

pytestmark = pytest.mark.integration


def snapshots_at_home(scene: CopyScene) -> list[str]:
    gateway = scene.mirrors.labs.source.gateway
    listed = gateway.list_snapshots(scene.workspace.volume_uuid)
    return [each.name for each in listed]


def test_only_what_changed_since_the_clone_is_sent(copy_scene: CopyScene) -> None:
    scene = copy_scene
    (scene.workspace.path / "file").write_text("mine")

    copy = scene.tend()

    assert copy.state == WorkspaceCopy.State.READY, copy.status_message
    assert scene.file_there() == "mine"
    [first] = copy.snapshots.all()
    assert (first.bytes, first.arrived_at is None) == (len("mine"), False)
    assert tend_all(now=clocks.database_now()) == 0  # not due for an hour
    (scene.workspace.path / "more").write_text("more of it")
    scene.due_again()
    scene.tend()
    [second] = copy.snapshots.all()
    assert second.bytes == len("more of it")
    assert scene.file_there("more") == "more of it"
    assert snapshots_at_home(scene) == [scene.workspace.snapshot.name, second.name]
    with pytest.raises(ActionRefused) as refused:
        mirror_delete(by=scene.mirrors.by, mirror=scene.mirror)
    assert refused.value.code == "mirror_in_use"


def test_a_purge_waits_until_the_copy_is_gone(
    copy_scene: CopyScene, alice: User
) -> None:
    scene, labs = copy_scene, copy_scene.mirrors.labs
    scene.tend()
    workspace_retire(by=alice, workspace=scene.workspace)
    settle(scene.workspace)
    assert scene.workspace.state == Workspace.State.TRASHED
    relationships = len(labs.rows(records.Relationship))

    workspace_purge(by=alice, workspace=scene.workspace)

    settle(scene.workspace)
    assert labs.source.gateway.find_volume(scene.workspace.volume_name) is None
    copy = scene.copy
    assert copy.state == WorkspaceCopy.State.DELETED
    assert len(labs.rows(records.Relationship)) == relationships - 1
    assert labs.there.find_volume(copy.volume_name) is None
    assert not copy.snapshots.exists()


def test_copies_go_when_they_are_switched_off(copy_scene: CopyScene) -> None:
    scene = copy_scene
    scene.tend()

    copy_rule_delete(by=scene.mirrors.by, rule=scene.rule)

    assert scene.tend().state == WorkspaceCopy.State.DELETED
    assert snapshots_at_home(scene) == [scene.workspace.snapshot.name]


def test_a_workspace_whose_snapshot_is_not_at_the_site_waits(
    copy_scene: CopyScene, alice: User
) -> None:
    scene = copy_scene
    MirroredSnapshot.objects.update(state=MirroredSnapshot.State.GONE)

    copy = scene.tend()

    assert copy.state == WorkspaceCopy.State.WAITING
    assert "is not at bangalore" in obstacle_of(copy, places_of([copy])[copy.pk])
    with pytest.raises(ActionRefused) as refused:
        copy_transfer(by=alice, copy=copy)
    assert refused.value.code == "copy_hindered"


def test_a_failed_transfer_is_tried_again_and_goes_on(copy_scene: CopyScene) -> None:
    scene, labs = copy_scene, copy_scene.mirrors.labs
    labs.destination.control.set_settings(svm_peering=False)
    failed = scene.tend()
    assert (failed.state, failed.status_code) == ("failed", "mirror_not_peered")
    labs.destination.control.set_settings(svm_peering=True)
    assert tend_all(now=clocks.database_now()) == 0  # not yet
    scene.due_again()

    tend_all(now=clocks.database_now() + RETRIED_AFTER)

    assert settle(scene.copy).state == WorkspaceCopy.State.READY
    assert len(snapshots_at_home(scene)) == 2


def test_a_relationship_that_somebody_broke_off_is_left_to_people(
    copy_scene: CopyScene,
) -> None:
    scene, labs = copy_scene, copy_scene.mirrors.labs
    copy = scene.tend()
    row = next(
        row
        for row in labs.rows(records.Relationship)
        if row.uuid == copy.relationship_uuid
    )
    labs.destination.lab.array.store.save(
        type(row)(**{**vars(row), "state": "broken_off"})
    )
    scene.due_again()

    copy = scene.tend()

    assert copy.status_code == "copy_broken_off"
    assert f"snapmirror resync -destination-path {copy.volume_path}" in (
        copy.status_message
    )


def test_every_step_may_run_again(copy_scene: CopyScene) -> None:
    scene = copy_scene
    copy = scene.tend()
    [copied] = copy.snapshots.all()
    before = (snapshots_at_home(scene), len(scene.mirrors.labs.rows(records.Transfer)))

    for step in copy.operations.get().steps.exclude(state="skipped"):
        perform_again(step)

    assert snapshots_at_home(scene) == before[0]
    assert len(scene.mirrors.labs.rows(records.Transfer)) == before[1]
    assert copy.snapshots.get() == copied


def test_a_relationship_made_before_a_kill_is_continued(copy_scene: CopyScene) -> None:
    scene, labs = copy_scene, copy_scene.mirrors.labs
    labs.destination.control.set_faults(
        {"method": "PATCH", "path": "/api/snapmirror/*", "status": 400, "code": "1"}
    )
    copy = scene.tend()
    assert copy.state == WorkspaceCopy.State.FAILED
    found = labs.there.find_relationship(copy.volume_name)
    assert found is not None
    assert (found.state, copy.relationship_uuid) == ("broken_off", "")
    labs.destination.control.set_faults()
    scene.due_again()

    tend_all(now=clocks.database_now() + RETRIED_AFTER)

    assert settle(copy).state == WorkspaceCopy.State.READY, copy.status_message
    assert copy.relationship_uuid == found.uuid
