"""What the gateway promises of mirrors, between two clusters of the lab."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from provisioner.gateways.errors import (
    AlreadyExists,
    Busy,
    GatewayError,
    NotFound,
    OutOfSpace,
    Refused,
    Unreachable,
)
from provisioner.gateways.ontap.polling import wait_until
from provisioner.gateways.ontap.types import CloneSpec, Relationship, Transfer
from tests.support.mirrored_labs import (
    COMMENT,
    POLICY,
    MirroredLabs,
)
from tests.support.ontap_scene import GID, UID

RELATIONSHIPS = "/api/snapmirror/relationships*"


def settled(labs: MirroredLabs, uuid: str) -> Relationship:
    """Return the relationship once no transfer is running."""

    def look() -> Relationship | None:
        found = labs.there.get_relationship(uuid)
        return None if found.transfer_uuid else found

    found = wait_until(look, limit_seconds=10)
    assert found is not None
    return found


def ended(labs: MirroredLabs, uuid: str, transfer_uuid: str) -> Transfer:
    """Return a transfer once none is running."""
    settled(labs, uuid)
    found = labs.there.find_transfer(uuid, transfer_uuid=transfer_uuid)
    assert found is not None
    return found


def transferred(labs: MirroredLabs, uuid: str, snapshot: str) -> Transfer:
    started = labs.there.start_transfer(uuid, snapshot=snapshot)
    return ended(labs, uuid, started)


def test_a_snapshot_arrives_with_its_version_and_can_be_cloned(
    mirrored_labs: MirroredLabs,
) -> None:
    labs = mirrored_labs
    volume = labs.make_volume()
    made = labs.there.create_relationship(
        volume.name, source_path=labs.source_path, policy=POLICY
    )
    assert (made.state, made.policy) == ("uninitialized", POLICY)
    assert (made.source_path, made.transfer_uuid) == (labs.source_path, "")
    assert labs.there.find_snapshot_version(volume.uuid, name="cl_7") is None

    first = transferred(labs, made.uuid, "cl_7")

    assert first.state == "success"
    related = labs.there.get_relationship(made.uuid)
    assert (related.state, related.is_healthy) == ("snapmirrored", True)
    copy = labs.there.find_snapshot_version(volume.uuid, name="cl_7")
    original = labs.source.gateway.find_snapshot_version(labs.volume.uuid, name="cl_7")
    assert copy is not None
    assert original is not None
    assert copy.version_uuid == original.version_uuid != ""
    clone = labs.there.create_clone(
        CloneSpec(
            name="ws",
            parent_volume=volume.name,
            parent_snapshot="cl_7",
            comment=COMMENT,
            uid=UID,
            gid=GID,
        )
    )
    files = labs.destination.lab.array.root / "data" / "volumes" / clone.uuid
    assert (files / "file").read_text() == "first"


def test_only_the_snapshot_that_is_named_is_carried(
    mirrored_labs: MirroredLabs,
) -> None:
    labs = mirrored_labs
    uuid = labs.relate().uuid
    assert [each.uuid for each in labs.there.list_relationships()] == [uuid]
    transferred(labs, uuid, "cl_7")
    for name in ("cl_8", "cl_9"):
        labs.write(name)
        labs.source.gateway.create_snapshot(labs.volume.uuid, name=name, comment="")

    transferred(labs, uuid, "cl_9")

    volume = labs.there.find_volume("tmpl_dst")
    assert volume is not None
    names = {each.name for each in labs.there.list_snapshots(volume.uuid)}
    assert names == {"cl_7", "cl_9"}


def test_the_destination_keeps_the_newest_with_the_label_and_what_is_cloned(
    mirrored_labs: MirroredLabs,
) -> None:
    labs = mirrored_labs
    volume = labs.make_volume()
    labs.there.create_mirror_policy("keep_1", label=POLICY, keep=1)
    uuid = labs.there.create_relationship(
        volume.name, source_path=labs.source_path, policy="keep_1"
    ).uuid
    for name in ("cl_8", "cl_9", "cl_10"):
        labs.source.gateway.create_snapshot(
            labs.volume.uuid, name=name, comment="", label=POLICY
        )
        transferred(labs, uuid, name)
        if name == "cl_8":
            labs.there.create_clone(
                CloneSpec(
                    name="ws",
                    parent_volume=volume.name,
                    parent_snapshot=name,
                    comment=COMMENT,
                    uid=UID,
                    gid=GID,
                )
            )

    there = {each.name for each in labs.there.list_snapshots(volume.uuid)}
    assert there == {"cl_8", "cl_10"}


def test_peers_are_told_with_the_uuids_of_their_svms(
    mirrored_labs: MirroredLabs,
) -> None:
    [peer] = mirrored_labs.there.list_svm_peers()
    assert (peer.name, peer.state, peer.has_snapmirror) == ("svm_dev", "peered", True)
    [svm] = mirrored_labs.source.gateway.list_svms()
    assert peer.svm_uuid == svm.uuid


def test_svms_that_are_not_peered_are_refused(mirrored_labs: MirroredLabs) -> None:
    mirrored_labs.destination.control.set_settings(svm_peering=False)
    assert mirrored_labs.there.list_svm_peers() == []
    with pytest.raises(Refused) as raised:
        mirrored_labs.relate()
    assert raised.value.remote_code == "13303939"
    assert "not peered" in raised.value.sentence


def test_a_snapshot_that_the_source_lacks_is_refused(
    mirrored_labs: MirroredLabs,
) -> None:
    uuid = mirrored_labs.relate().uuid
    with pytest.raises(Refused) as raised:
        mirrored_labs.there.start_transfer(uuid, snapshot="cl_nowhere")
    assert "cl_nowhere" in raised.value.sentence
    assert mirrored_labs.there.get_relationship(uuid).transfer_uuid == ""


def test_a_transfer_that_is_aborted_leaves_no_copy_and_is_started_again(
    mirrored_labs: MirroredLabs,
) -> None:
    labs = mirrored_labs
    uuid = labs.relate().uuid
    labs.destination.control.set_settings(transfer_seconds=30.0)
    labs.there.start_transfer(uuid, snapshot="cl_7")
    running = labs.there.get_relationship(uuid)
    assert running.transfer_uuid
    with pytest.raises(Busy):
        labs.there.start_transfer(uuid, snapshot="cl_7")
    with pytest.raises(Busy):
        labs.there.delete_relationship(uuid)

    labs.there.abort_transfer(uuid, transfer_uuid=running.transfer_uuid)

    assert ended(labs, uuid, running.transfer_uuid).state == "aborted"
    volume = labs.there.find_volume("tmpl_dst")
    assert volume is not None
    assert labs.there.find_snapshot_version(volume.uuid, name="cl_7") is None
    with pytest.raises(Refused):
        labs.there.abort_transfer(uuid, transfer_uuid=running.transfer_uuid)
    labs.destination.control.set_settings(transfer_seconds=0.0)
    assert transferred(labs, uuid, "cl_7").state == "success"


def test_a_transfer_that_failed_says_why(mirrored_labs: MirroredLabs) -> None:
    labs = mirrored_labs
    uuid = labs.relate().uuid
    done = transferred(labs, uuid, "cl_7")
    assert (done.state, done.snapshot, done.error_message) == ("success", "cl_7", "")
    assert done.bytes > 0
    labs.source.gateway.create_snapshot(labs.volume.uuid, name="cl_8", comment="")
    labs.destination.control.set_settings(svm_peering=False)

    failed = transferred(labs, uuid, "cl_8")

    assert failed.state == "failed"
    assert "not peered" in failed.error_message
    related = labs.there.get_relationship(uuid)
    assert not related.is_healthy
    assert "not peered" in related.unhealthy_reason


def test_a_full_destination_is_named_as_the_reason(mirrored_labs: MirroredLabs) -> None:
    mirrored_labs.destination.control.set_settings(aggregate_is_full=True)
    with pytest.raises(OutOfSpace):
        mirrored_labs.make_volume()


def test_deleting_a_relationship_keeps_the_snapshots_of_both_ends(
    mirrored_labs: MirroredLabs,
) -> None:
    labs = mirrored_labs
    uuid = labs.relate().uuid
    transferred(labs, uuid, "cl_7")

    for _ in range(2):
        labs.there.delete_relationship(uuid)
        labs.source.gateway.release_relationship(uuid)

    assert labs.there.find_relationship("tmpl_dst") is None
    with pytest.raises(NotFound):
        labs.there.get_relationship(uuid)
    volume = labs.there.find_volume("tmpl_dst")
    assert volume is not None
    assert labs.there.find_snapshot_version(volume.uuid, name="cl_7") is not None
    assert (
        labs.source.gateway.find_snapshot_version(labs.volume.uuid, name="cl_7")
        is not None
    )
    labs.source.gateway.delete_volume(labs.volume.uuid, force=True)


def test_ending_a_relationship_ends_its_transfer_or_finds_it_ended(
    mirrored_labs: MirroredLabs,
) -> None:
    labs = mirrored_labs
    uuid = labs.relate().uuid
    labs.destination.control.set_settings(transfer_seconds=30.0)
    labs.there.start_transfer(uuid, snapshot="cl_7")
    running = labs.there.get_relationship(uuid)
    labs.there.abort_transfer(uuid, transfer_uuid=running.transfer_uuid)

    labs.there.end_relationship(running)  # as it was seen before it ended

    assert labs.there.find_relationship("tmpl_dst") is None


# --- every write


@dataclass(frozen=True)
class Verb:
    """A write: `act` does it, `is_done` sees its effect, `repeated` is what the second
    one raises; None where it is a success.
    """

    method: str
    path: str
    act: Callable[[], object]
    is_done: Callable[[], bool]
    repeated: type[GatewayError] | None


def create_policy(labs: MirroredLabs) -> Verb:
    # Each test has its own name: nothing deletes policies.
    name = f"p_{labs.volume.uuid[:8]}"
    return Verb(
        "POST",
        "/api/snapmirror/policies*",
        lambda: labs.there.create_mirror_policy(name, label="cloneyard", keep=5),
        lambda: labs.there.has_mirror_policy(name),
        AlreadyExists,
    )


def create_volume(labs: MirroredLabs) -> Verb:
    return Verb(
        "POST",
        "/api/storage/volumes*",
        labs.make_volume,
        lambda: labs.there.find_volume("tmpl_dst") is not None,
        AlreadyExists,
    )


def create_relationship(labs: MirroredLabs) -> Verb:
    labs.make_volume()
    return Verb(
        "POST",
        RELATIONSHIPS,
        lambda: labs.there.create_relationship(
            "tmpl_dst", source_path=labs.source_path, policy=POLICY
        ),
        lambda: labs.there.find_relationship("tmpl_dst") is not None,
        AlreadyExists,
    )


def start_transfer(labs: MirroredLabs) -> Verb:
    uuid = labs.relate().uuid
    labs.destination.control.set_settings(transfer_seconds=30.0)
    return Verb(
        "POST",
        "*/transfers*",
        lambda: labs.there.start_transfer(uuid, snapshot="cl_7"),
        lambda: labs.there.get_relationship(uuid).transfer_uuid != "",
        Busy,
    )


def delete_relationship(labs: MirroredLabs) -> Verb:
    uuid = labs.relate().uuid
    return Verb(
        "DELETE",
        RELATIONSHIPS,
        lambda: labs.there.delete_relationship(uuid),
        lambda: labs.there.find_relationship("tmpl_dst") is None,
        None,
    )


@pytest.fixture(
    params=(
        create_policy,
        create_volume,
        create_relationship,
        start_transfer,
        delete_relationship,
    ),
    ids=lambda verb: verb.__name__,
)
def verb(request: pytest.FixtureRequest, mirrored_labs: MirroredLabs) -> Verb:
    found: Verb = request.param(mirrored_labs)
    return found


def test_a_lost_reply_is_told_and_the_next_look_decides(
    verb: Verb, mirrored_labs: MirroredLabs
) -> None:
    mirrored_labs.destination.control.set_faults(
        {
            "method": verb.method,
            "path": verb.path,
            "drop": True,
            "when": "after",
            "times": 1,
        }
    )
    with pytest.raises(Unreachable):
        verb.act()
    assert wait_until(lambda: verb.is_done() or None, limit_seconds=5)
    if verb.repeated is None:
        verb.act()
    else:
        with pytest.raises(verb.repeated):
            verb.act()


def test_a_request_that_never_arrived_has_done_nothing(
    verb: Verb, mirrored_labs: MirroredLabs
) -> None:
    mirrored_labs.destination.control.set_faults(
        {"method": verb.method, "path": verb.path, "drop": True, "times": 1}
    )
    with pytest.raises(Unreachable):
        verb.act()
    assert not verb.is_done()
    verb.act()
    assert verb.is_done()
