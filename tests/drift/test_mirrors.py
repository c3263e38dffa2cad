"""Mirrors whose volume, relationship or row is missing, between two labs."""

from __future__ import annotations

import uuid

import pytest

from provisioner.catalog.models import Template
from provisioner.drift.actions import finding_resolve
from provisioner.drift.comparison.previews import preview
from provisioner.drift.models import FarSide, Finding
from provisioner.drift.sweeps.checks import run_drift_check
from provisioner.gateways.ontap.types import CloneSpec, VolumeSettings
from provisioner.lab.ontap import records
from provisioner.lib import clocks
from provisioner.mirrors.actions import mirror_create, mirror_transfer
from provisioner.mirrors.models import Mirror
from provisioner.workspaces.models import Workspace
from tests.support.drift_scene import K, long_ago, only, resolve
from tests.support.mirrors import MirrorScene


@pytest.fixture
def mirror(mirror_scene: MirrorScene) -> Mirror:
    mirror = mirror_create(
        by=mirror_scene.by, template=mirror_scene.template, site=mirror_scene.site
    )
    mirror_scene.settled(mirror)
    assert mirror.state == Mirror.State.READY, mirror.status_message
    long_ago()
    return mirror


def found_at_the_site(mirror: Mirror) -> list[Finding]:
    run = run_drift_check(mirror.site, system=FarSide.ONTAP)
    assert not run.status_message
    return list(Finding.objects.filter(site=mirror.site, resolved_at=None))


def test_a_mirror_and_a_clone_of_it_are_known(
    mirror: Mirror, mirror_scene: MirrorScene
) -> None:
    mirrored = mirror.snapshots.get()
    there = mirror_scene.labs.there
    workspace = Workspace.objects.create(
        name="hers",
        owner=mirror_scene.by,
        p4_user="alice",
        uid=20001,
        gid=20000,
        site=mirror.site,
        template=mirror.template,
        snapshot=mirrored.snapshot,
        state="failed",
        status_code="unreachable",
        failed_at=clocks.database_now(),
    )
    there.create_clone(
        CloneSpec(
            name=workspace.volume_name,
            parent_volume=mirror.volume_name,
            parent_snapshot=mirrored.snapshot.name,
            comment=workspace.volume_comment,
            uid=None,
            gid=None,
        )
    )

    # Its row lacks the id of the clone: name, tag and parent prove that it is its own.
    found = only(found_at_the_site(mirror), K.VOLUME_WITHOUT_ROW)
    assert (found.workspace, found.is_automatic) == (workspace, True)


def test_a_mirror_that_somebody_made_thick_or_small_is_restored(
    mirror: Mirror, mirror_scene: MirrorScene
) -> None:
    there, uuid = mirror_scene.labs.there, mirror.volume_uuid
    size = there.get_volume(uuid).size_bytes
    there.set_volume_size(uuid, size_bytes=size // 2)
    assert found_at_the_site(mirror) == []  # ONTAP sizes it by itself
    changed = VolumeSettings(autosize_mode="off", guarantee="volume")
    there.set_volume_settings(uuid, changed)

    by_kind = {found.kind: found for found in found_at_the_site(mirror)}

    small, thick = by_kind[K.VOLUME_SIZE_DIFFERS], by_kind[K.VOLUME_SETTINGS_DIFFER]
    assert len(by_kind) == 2
    assert "and the volume of its template has" in small.sentence
    assert "guarantee volume, and it was made with guarantee none" in thick.sentence
    for finding in (small, thick):
        assert resolve(finding, mirror_scene.by).resolved_at, finding.status_message
    seen = there.get_volume(uuid)
    assert (seen.size_bytes, seen.guarantee) == (size, "none")
    assert found_at_the_site(mirror) == []


def test_what_a_mirror_has_lost_is_created_again(
    mirror: Mirror, mirror_scene: MirrorScene
) -> None:
    there = mirror_scene.labs.there
    assert found_at_the_site(mirror) == []
    there.delete_relationship(mirror.relationship_uuid)
    mirror_scene.labs.source.gateway.release_relationship(mirror.relationship_uuid)
    only(found_at_the_site(mirror), K.ROW_WITHOUT_RELATIONSHIP)
    volume = there.find_volume(mirror.volume_name)
    assert volume is not None
    there.delete_volume(volume.uuid, force=True)
    lost = only(found_at_the_site(mirror), K.ROW_WITHOUT_VOLUME)
    assert lost.mirror == mirror

    finding_resolve(by=mirror_scene.by, finding=lost)

    assert mirror_scene.settled(mirror).state == Mirror.State.READY
    assert there.find_relationship(mirror.volume_name) is not None
    assert mirror.snapshots.get().state == "available"
    long_ago()
    assert found_at_the_site(mirror) == []


def test_a_volume_whose_mirror_was_deleted_goes_with_its_relationship(
    mirror: Mirror, mirror_scene: MirrorScene
) -> None:
    there = mirror_scene.labs.there
    snapshot = mirror.snapshots.get().snapshot
    Mirror.objects.filter(pk=mirror.pk).update(state=Mirror.State.DELETED)
    clone = there.create_clone(
        CloneSpec(
            name="theirs",
            parent_volume=mirror.volume_name,
            parent_snapshot=snapshot.name,
            comment="theirs",
            uid=None,
            gid=None,
        )
    )
    found = only(found_at_the_site(mirror), K.VOLUME_WITHOUT_ROW)
    assert "has 1 clones" in resolve(found, mirror_scene.by).status_message
    assert there.find_relationship(mirror.volume_name) is not None
    there.delete_volume(clone.uuid, force=True)

    resolve(found, mirror_scene.by)

    assert found.resolution == f"The volume {mirror.volume_name} was deleted."
    assert there.find_volume(mirror.volume_name) is None
    assert mirror_scene.labs.rows(records.Relationship) == []
    assert mirror_scene.labs.source.lab.array.store.select(records.Destination) == []


def test_a_mirror_whose_row_was_lost_is_adopted_with_its_proven_snapshots(
    mirror: Mirror, mirror_scene: MirrorScene
) -> None:
    there = mirror_scene.labs.there
    lost_tag, volume_name = mirror.tag, mirror.volume_name
    # As in a database restored from before it was created.
    Mirror.objects.filter(pk=mirror.pk).update(
        state=Mirror.State.DELETED, tag=uuid.uuid4()
    )
    found = only(found_at_the_site(mirror), K.VOLUME_WITHOUT_ROW)
    assert found.action == Finding.Action.ADOPT
    assert found.details["row"] == {
        "mirror": mirror.name,
        "template": mirror.template.name,
        "home": "munich",
        "keep": 10,
    }
    assert any(f"Make the mirror {mirror.name}" in line for line in preview(found))

    resolve(found, mirror_scene.by)

    again = Mirror.objects.get(tag=lost_tag)
    assert found.resolution.startswith(f"It is the mirror {again.name} again, with 1")
    assert (again.state, again.volume_name) == (Mirror.State.READY, volume_name)
    copy = again.snapshots.get()
    known = there.find_snapshot_version(again.volume_uuid, name=copy.snapshot.name)
    assert known is not None
    assert (copy.state, copy.ontap_uuid) == ("available", known.uuid)
    long_ago()
    assert found_at_the_site(again) == []
    newest = mirror_scene.publish("c101.b2")
    mirror_transfer(by=mirror_scene.by, mirror=again, snapshot=newest)
    assert mirror_scene.settled(again).state == Mirror.State.READY


def test_a_mirror_of_an_unknown_template_waits_for_its_adoption(
    mirror: Mirror, mirror_scene: MirrorScene
) -> None:
    Mirror.objects.filter(pk=mirror.pk).update(
        state=Mirror.State.DELETED, tag=uuid.uuid4()
    )
    Template.objects.filter(pk=mirror.template_id).update(tag=uuid.uuid4())

    found = only(found_at_the_site(mirror), K.VOLUME_WITHOUT_ROW)

    assert "Adopt the template first" in found.details["obstacle"]
    resolve(found, mirror_scene.by)
    assert "Adopt the template first" in found.status_message
    assert not Mirror.objects.exists()
