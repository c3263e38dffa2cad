"""The life of a mirror: transfers that follow builds, clones, checks, deletion."""

from __future__ import annotations

import threading

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.events import template_built
from provisioner.catalog.models import Template
from provisioner.catalog.retention import superfluous
from provisioner.gateways.ontap.polling import wait_until
from provisioner.lab.ontap import records
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused
from provisioner.mirrors.actions import (
    mirror_create,
    mirror_delete,
    mirror_retry,
    mirror_update,
)
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.mirrors.queries import snapshots_at
from provisioner.mirrors.refusals import MirrorBusy
from provisioner.mirrors.sweeps import RETRIED_AFTER, check_all, transfer_all
from provisioner.sites.models import PerforceServer
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace
from tests.support.jobs import settle
from tests.support.mirrors import MirrorScene
from tests.support.requests import workspace_create


def test_a_clone_is_made_beside_the_person_and_keeps_the_mirror(
    mirror_scene: MirrorScene, alice: User
) -> None:
    PerforceServer.objects.update(checks_read_access=False)
    scene, there = mirror_scene, mirror_scene.labs.destination
    scene.site.mount_root = str(there.lab.mount_root)
    scene.site.save()
    mirror = scene.settled(
        mirror_create(by=scene.by, template=scene.template, site=scene.site)
    )

    workspace = settle(
        workspace_create(
            by=alice, template=scene.template, site=scene.site, purpose="build"
        )
    )

    assert workspace.state == Workspace.State.READY, workspace.status_message
    assert (workspace.path / "file").read_text() == "built"
    clone = there.gateway.get_volume(workspace.volume_uuid)
    assert clone.clone_parent is not None
    assert clone.clone_parent.volume_name == mirror.volume_name
    with pytest.raises(ActionRefused) as refused:
        mirror_delete(by=scene.by, mirror=mirror)
    assert refused.value.code == "mirror_in_use"
    mirror.refresh_from_db()
    assert mirror.state == Mirror.State.READY
    assert superfluous(scene.template) == []
    workspace_retire(by=alice, workspace=workspace)
    settle(workspace)
    assert workspace.state == Workspace.State.TRASHED, workspace.status_message


def test_a_mirror_is_deleted_with_all_that_it_has(mirror_scene: MirrorScene) -> None:
    scene, labs = mirror_scene, mirror_scene.labs
    mirror = scene.settled(
        mirror_create(by=scene.by, template=scene.template, site=scene.site)
    )
    assert superfluous(scene.template) == []
    scene.publish("c101.b2")
    labs.destination.control.set_settings(svm_peering=False)
    assert transfer_all(now=clocks.database_now()) == 1
    assert scene.settled(mirror).state == Mirror.State.FAILED
    labs.destination.control.set_settings(svm_peering=True)

    mirror_delete(by=scene.by, mirror=mirror)

    assert scene.settled(mirror).state == Mirror.State.DELETED
    assert labs.rows(records.Relationship) == []
    assert labs.source.lab.array.store.select(records.Destination) == []
    assert labs.there.find_volume(mirror.volume_name) is None
    states = mirror.snapshots.values_list("state", flat=True)
    assert list(states) == [MirroredSnapshot.State.GONE] * 2
    assert not Mirror.objects.exists()
    again = mirror_create(by=scene.by, template=scene.template, site=scene.site)
    assert scene.settled(again).state == Mirror.State.READY


def test_a_new_default_snapshot_is_transferred_at_once_and_after_a_cut(
    mirror_scene: MirrorScene,
) -> None:
    scene, labs = mirror_scene, mirror_scene.labs
    mirror = scene.settled(
        mirror_create(by=scene.by, template=scene.template, site=scene.site)
    )
    newest = scene.publish("c101.b2")
    labs.destination.control.set_settings(svm_peering=False)

    template_built.send(Template, template=scene.template)

    failed = scene.settled(mirror)
    assert (failed.state, failed.status_code) == ("failed", "mirror_not_peered")
    labs.destination.control.set_settings(svm_peering=True)
    assert transfer_all(now=clocks.database_now()) == 0  # not yet
    assert transfer_all(now=clocks.database_now() + RETRIED_AFTER) == 1
    assert scene.settled(mirror).state == Mirror.State.READY
    assert snapshots_at(scene.template, scene.site).first() == newest
    assert transfer_all(now=clocks.database_now()) == 0


def test_a_link_that_is_cut_during_a_transfer_is_waited_for(
    mirror_scene: MirrorScene,
) -> None:
    scene, labs = mirror_scene, mirror_scene.labs
    labs.destination.control.set_settings(transfer_seconds=1.0)
    mirror = mirror_create(by=scene.by, template=scene.template, site=scene.site)

    def cut() -> None:
        wait_until(lambda: labs.rows(records.Transfer) or None, limit_seconds=20)
        labs.destination.control.set_settings(svm_peering=False)
        wait_until(
            lambda: (
                [t for t in labs.rows(records.Transfer) if t.state == "failed"] or None
            ),
            limit_seconds=20,
        )
        labs.destination.control.set_settings(svm_peering=True)

    cutting = threading.Thread(target=cut)
    cutting.start()
    assert scene.settled(mirror).state == Mirror.State.READY
    cutting.join()
    assert {t.state for t in labs.rows(records.Transfer)} == {"failed", "success"}
    assert len(labs.rows(records.Relationship)) == 1


def test_another_number_to_keep_moves_the_relationship_to_another_policy(
    mirror_scene: MirrorScene,
) -> None:
    scene, there = mirror_scene, mirror_scene.labs.there
    mirror = scene.settled(
        mirror_create(by=scene.by, template=scene.template, site=scene.site, keep=3)
    )

    mirror_update(by=scene.by, mirror=mirror, keep=5, start="by-hand")

    with pytest.raises(MirrorBusy):
        mirror_update(by=scene.by, mirror=mirror, keep=6)
    assert scene.settled(mirror).state == Mirror.State.READY, mirror.status_message
    related = there.get_relationship(mirror.relationship_uuid)
    assert (mirror.keep, related.policy) == (5, "cloneyard-keep-5")
    assert mirror.operations.count() == 3, "it does not transfer by itself"
    there.set_policy(related.uuid, policy="cloneyard-keep-3")
    check_all(now=clocks.database_now())
    mirror.refresh_from_db()
    assert "has the policy cloneyard-keep-3 in place of" in mirror.trouble

    mirror_retry(by=scene.by, mirror=mirror)

    assert scene.settled(mirror).state == Mirror.State.READY, mirror.status_message
    assert there.get_relationship(related.uuid).policy == "cloneyard-keep-5"


def test_what_others_change_in_ontap_is_shown(mirror_scene: MirrorScene) -> None:
    scene = mirror_scene
    mirror = scene.settled(
        mirror_create(by=scene.by, template=scene.template, site=scene.site)
    )
    check_all(now=clocks.database_now())
    mirror.refresh_from_db()
    assert (mirror.trouble, mirror.checked_at is None) == ("", False)
    scene.labs.there.delete_relationship(mirror.relationship_uuid)

    check_all(now=clocks.database_now())

    mirror.refresh_from_db()
    assert "No SnapMirror relationship leads to svm_far:" in mirror.trouble
