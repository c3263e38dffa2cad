"""What the gateway promises once a destination is promoted, and on the way back."""

from __future__ import annotations

import pytest

from provisioner.gateways.errors import Busy, Refused
from provisioner.gateways.ontap.polling import wait_until
from provisioner.gateways.ontap.types import (
    CloneSpec,
    Relationship,
    SnapshotVersion,
    Volume,
)
from tests.support.mirrored_labs import (
    COMMENT,
    POLICY,
    End,
    MirroredLabs,
)
from tests.support.ontap_scene import GID, UID


def idle(end: End, uuid: str) -> Relationship:
    """Return the relationship once no transfer is running."""

    def look() -> Relationship | None:
        found = end.gateway.get_relationship(uuid)
        return None if found.transfer_uuid else found

    found = wait_until(look, limit_seconds=10)
    assert found is not None
    return found


def names(end: End, volume: Volume) -> set[str]:
    return {each.name for each in end.gateway.list_snapshots(volume.uuid)}


@pytest.fixture
def promoted(mirrored_labs: MirroredLabs) -> Volume:
    """The destination with the snapshot cl_7, broken off and without a relationship.

    The old source has cl_8 in addition.
    """
    labs = mirrored_labs
    uuid = labs.relate().uuid
    labs.there.start_transfer(uuid, snapshot="cl_7")
    idle(labs.destination, uuid)
    labs.write("lost")
    labs.source.gateway.create_snapshot(labs.volume.uuid, name="cl_8", comment="")
    labs.there.break_relationship(uuid)
    labs.there.break_relationship(uuid)
    broken = labs.there.get_relationship(uuid)
    assert (broken.state, broken.exported_snapshot) == ("broken_off", "cl_7")
    labs.there.delete_relationship(uuid)
    volume = labs.there.find_volume("tmpl_dst")
    assert volume is not None
    assert not volume.is_destination
    return volume


def related_back(labs: MirroredLabs, *, name: str = "tmpl_dst") -> str:
    """Return the UUID of the relationship in the other direction."""
    labs.source.gateway.release_all(labs.volume.name)
    if not labs.source.gateway.has_mirror_policy(POLICY):
        labs.source.gateway.create_mirror_policy(POLICY, label=POLICY, keep=5)
    made = labs.source.gateway.create_relationship(
        labs.volume.name,
        source_path=f"{labs.destination.lab.config.svm}:{name}",
        policy=POLICY,
    )
    assert made.state == "broken_off"
    return made.uuid


def test_a_promoted_volume_is_renamed_and_takes_snapshots(
    mirrored_labs: MirroredLabs, promoted: Volume
) -> None:
    there = mirrored_labs.there

    renamed = there.rename_volume(promoted.uuid, name="tmpl", comment=f"{COMMENT}-2")

    assert (renamed.uuid, renamed.name) == (promoted.uuid, "tmpl")
    assert renamed.comment == f"{COMMENT}-2"
    assert there.rename_volume(promoted.uuid, name="tmpl", comment=COMMENT).name
    there.create_snapshot(promoted.uuid, name="cl_9", comment="")
    assert names(mirrored_labs.destination, promoted) == {"cl_7", "cl_9"}


def test_a_resync_goes_back_to_the_newest_common_snapshot(
    mirrored_labs: MirroredLabs, promoted: Volume
) -> None:
    labs, old = mirrored_labs, mirrored_labs.source
    labs.there.create_snapshot(promoted.uuid, name="cl_9", comment="", label=POLICY)
    uuid = related_back(labs)

    old.gateway.resync_relationship(uuid)

    back = idle(old, uuid)
    assert (back.state, back.is_healthy) == ("snapmirrored", True)
    assert names(old, labs.volume) == {"cl_7", "cl_9"}
    files = old.lab.array.root / "data" / "volumes" / labs.volume.uuid
    assert (files / "file").read_text() == "first"

    def version(end: End, volume: Volume) -> SnapshotVersion | None:
        return end.gateway.find_snapshot_version(volume.uuid, name="cl_9")

    there, here = version(labs.destination, promoted), version(old, labs.volume)
    assert there is not None
    assert here is not None
    assert here.version_uuid == there.version_uuid


def test_a_clone_of_a_later_snapshot_prevents_the_resync(
    mirrored_labs: MirroredLabs, promoted: Volume
) -> None:
    labs, old = mirrored_labs, mirrored_labs.source
    old.gateway.create_clone(
        CloneSpec(
            name="ws",
            parent_volume=labs.volume.name,
            parent_snapshot="cl_8",
            comment=COMMENT,
            uid=UID,
            gid=GID,
        )
    )
    uuid = related_back(labs)

    old.gateway.resync_relationship(uuid)

    failed = idle(old, uuid)
    assert (failed.state, failed.is_healthy) == ("broken_off", False)
    assert "cl_8" in failed.unhealthy_reason
    assert names(old, labs.volume) == {"cl_7", "cl_8"}


def test_volumes_without_a_common_snapshot_are_not_resynced(
    mirrored_labs: MirroredLabs, promoted: Volume
) -> None:
    labs, old = mirrored_labs, mirrored_labs.source
    old.gateway.release_all(labs.volume.name)
    for each in old.gateway.list_snapshots(labs.volume.uuid):
        old.gateway.delete_snapshot(labs.volume.uuid, snapshot_uuid=each.uuid)

    with pytest.raises(Refused) as raised:
        related_back(labs)

    assert raised.value.remote_code == "6619546"


def test_a_relationship_is_not_broken_off_during_a_transfer(
    mirrored_labs: MirroredLabs,
) -> None:
    labs = mirrored_labs
    uuid = labs.relate().uuid
    labs.there.start_transfer(uuid, snapshot="cl_7")
    idle(labs.destination, uuid)
    labs.source.gateway.create_snapshot(labs.volume.uuid, name="cl_8", comment="")
    labs.destination.control.set_settings(transfer_seconds=30.0)
    started = labs.there.start_transfer(uuid, snapshot="cl_8")

    with pytest.raises(Busy):
        labs.there.break_relationship(uuid)

    labs.there.abort_transfer(uuid, transfer_uuid=started)
    labs.there.break_relationship(uuid)
    assert labs.there.get_relationship(uuid).state == "broken_off"
