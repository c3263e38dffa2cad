"""What gateway.py promises, on the lab and on a real ONTAP where one is given."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from provisioner.gateways.errors import (
    AlreadyExists,
    AuthFailed,
    GatewayError,
    InUse,
    NotFound,
    Refused,
)
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.polling import wait_until
from provisioner.gateways.ontap.types import (
    SIZES_DIFFER_BYTES,
    CloneSplit,
    EfficiencyPolicy,
    ExportRule,
    QosSpec,
    VolumeSettings,
    most_inodes,
)
from tests.support.ontap_scene import (
    GID,
    SIZE_BYTES,
    UID,
    LabControl,
    OntapScene,
)

NO_SUCH_UUID = "00000000-0000-4000-8000-000000000000"

# --- the cluster and the SVM


def test_the_cluster_says_which_release_it_runs(cluster_ontap: OntapScene) -> None:
    cluster = cluster_ontap.gateway.get_cluster()
    assert cluster.name
    assert cluster.version >= (9, 6, 0)


def test_the_svm_is_ready(ontap: OntapScene) -> None:
    ontap.gateway.check_svm()


def test_an_svm_that_is_not_there_is_not_ready(ontap: OntapScene) -> None:
    account = dataclasses.replace(ontap.target.account, svm="svm_nowhere")
    gateway = OntapGateway(account)
    with pytest.raises(NotFound):
        gateway.check_svm()
    gateway.close()


def test_a_wrong_password_is_not_accepted(ontap: OntapScene) -> None:
    account = dataclasses.replace(ontap.target.account, password="wrong")
    gateway = OntapGateway(account)
    with pytest.raises(AuthFailed):
        gateway.get_cluster()
    gateway.close()


def test_an_aggregate_has_size_and_room(cluster_ontap: OntapScene) -> None:
    aggregate = cluster_ontap.gateway.get_aggregate(cluster_ontap.target.aggregate)
    assert aggregate.name == cluster_ontap.target.aggregate
    assert 0 < aggregate.available_bytes <= aggregate.size_bytes


def test_an_aggregate_that_is_not_there(cluster_ontap: OntapScene) -> None:
    with pytest.raises(NotFound):
        cluster_ontap.gateway.get_aggregate("aggr_nowhere")


def test_our_svm_is_among_those_we_see(ontap: OntapScene) -> None:
    svms = {svm.name: svm for svm in ontap.gateway.list_svms()}
    ours = svms[ontap.target.account.svm]
    assert (ours.state, ours.serves_nfs) == ("running", True)
    assert ontap.target.aggregate in ours.aggregates


def test_licenses_are_found_by_name(cluster_ontap: OntapScene) -> None:
    assert cluster_ontap.gateway.has_license("flexclone")
    assert not cluster_ontap.gateway.has_license("no_such_license")


@pytest.mark.parametrize(
    "ask",
    [
        OntapGateway.get_cluster,
        lambda gateway: gateway.get_aggregate("aggr1"),
        lambda gateway: gateway.has_license("flexclone"),
    ],
)
def test_what_the_role_lacks_is_refused_and_not_taken_for_absent(
    least_ontap: OntapScene, ask: Callable[[OntapGateway], object]
) -> None:
    with pytest.raises(Refused) as refused:
        ask(least_ontap.gateway)
    assert refused.value.remote_code == "6"
    assert "Our ONTAP account is not permitted to do this." in refused.value.sentence


def test_an_address_serves_nfs(ontap: OntapScene) -> None:
    lifs = ontap.gateway.list_data_lifs()
    assert any(lif.is_up and lif.address for lif in lifs)


# --- volumes


def test_a_new_volume_is_thin_unmounted_and_ours(ontap: OntapScene) -> None:
    volume = ontap.gateway.create_volume(ontap.volume_spec())
    assert volume.name == ontap.name("tmpl")
    assert volume.state == "online"
    assert volume.comment == ontap.comment("tmpl")
    assert volume.size_bytes == SIZE_BYTES
    assert volume.junction_path == ""
    assert volume.export_policy == "default"
    assert volume.snapshot_policy == "none"
    assert volume.clone_parent is None
    assert (volume.uid, volume.gid) == (UID, GID)
    assert volume.guarantee == "none"
    assert volume.snapshot_reserve_percent == 0
    assert volume.aggregate == ontap.target.aggregate
    assert volume.created_at is not None


def test_a_volume_is_found_by_name_and_by_uuid(ontap: OntapScene) -> None:
    made = ontap.make_volume()
    found = ontap.gateway.find_volume(made.name)
    assert found is not None
    assert found.uuid == made.uuid
    assert ontap.gateway.get_volume(made.uuid).name == made.name


def test_a_volume_that_is_not_there(ontap: OntapScene) -> None:
    assert ontap.gateway.find_volume(ontap.name("nothing")) is None
    with pytest.raises(NotFound):
        ontap.gateway.get_volume(NO_SUCH_UUID)


def test_a_pattern_finds_nothing_but_a_refusal(ontap: OntapScene) -> None:
    ontap.make_volume()
    with pytest.raises(Refused):
        ontap.gateway.find_volume(ontap.name("*"))


def test_volumes_are_listed_by_the_beginning_of_their_comment(
    ontap: OntapScene,
) -> None:
    ontap.make_volume("a")
    ontap.make_volume("b")
    listed = ontap.gateway.list_volumes(comment_prefix=ontap.comment())
    assert {each.name for each in listed} == {ontap.name("a"), ontap.name("b")}
    assert not ontap.gateway.list_volumes(comment_prefix=ontap.comment("c"))
    everything = {each.name for each in ontap.gateway.list_volumes()}
    assert {ontap.name("a"), ontap.name("b")} <= everything


def test_a_taken_volume_name(ontap: OntapScene) -> None:
    ontap.make_volume()
    with pytest.raises(AlreadyExists):
        ontap.make_volume()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"aggregate": "aggr_nowhere"}, NotFound),
        ({"export_policy": "nobody_has_this"}, NotFound),
        ({"name": "1_begins_with_a_digit"}, Refused),
        ({"name": "has-a-hyphen"}, Refused),
        ({"size_bytes": 4096}, Refused),
    ],
)
def test_a_volume_that_cannot_be(
    changes: dict[str, Any], error: type[GatewayError], ontap: OntapScene
) -> None:
    with pytest.raises(error):
        ontap.gateway.create_volume(ontap.volume_spec(**changes))
    assert not ontap.gateway.list_volumes(comment_prefix=ontap.comment())


# --- clones


def test_a_new_clone_is_online_unmounted_and_its_owners(ontap: OntapScene) -> None:
    parent = ontap.make_volume()
    snapshot = ontap.make_snapshot(parent)
    clone = ontap.gateway.create_clone(ontap.clone_spec(uid=2001, gid=2002))
    assert clone.state == "online"
    assert clone.comment == ontap.comment("ws")
    assert clone.junction_path == ""
    assert clone.guarantee == "none"
    assert (clone.uid, clone.gid) == (2001, 2002)
    assert clone.clone_parent is not None
    assert clone.clone_parent.volume_uuid == parent.uuid
    assert clone.clone_parent.volume_name == parent.name
    assert clone.clone_parent.snapshot_name == snapshot.name
    assert clone.clone_parent.snapshot_uuid == snapshot.uuid


def test_a_clone_without_an_owner_keeps_its_parents(ontap: OntapScene) -> None:
    ontap.make_snapshot(ontap.make_volume())
    clone = ontap.gateway.create_clone(ontap.clone_spec(uid=None, gid=None))
    assert (clone.uid, clone.gid) == (UID, GID)


def test_a_clone_for_root_is_refused(ontap: OntapScene) -> None:
    ontap.make_snapshot(ontap.make_volume())
    with pytest.raises(Refused):
        ontap.gateway.create_clone(ontap.clone_spec(uid=0, gid=0))
    assert ontap.gateway.find_volume(ontap.name("ws")) is None


def test_a_taken_clone_name(ontap: OntapScene) -> None:
    ontap.make_clone()
    with pytest.raises(AlreadyExists):
        ontap.make_clone()


@pytest.mark.parametrize(
    "changes",
    [{"parent_volume": "nobody_has_this"}, {"parent_snapshot": "nobody_has_this"}],
)
def test_a_clone_of_nothing(changes: dict[str, Any], ontap: OntapScene) -> None:
    ontap.make_snapshot(ontap.make_volume())
    with pytest.raises(NotFound):
        ontap.gateway.create_clone(ontap.clone_spec(**changes))
    assert ontap.gateway.find_volume(ontap.name("ws")) is None


def test_many_threads_may_share_a_gateway(ontap: OntapScene) -> None:
    ontap.make_snapshot(ontap.make_volume())
    specs = [ontap.clone_spec(f"ws{number}") for number in range(8)]
    with ThreadPoolExecutor(len(specs)) as pool:
        clones = list(pool.map(ontap.gateway.create_clone, specs))
    assert [clone.name for clone in clones] == [spec.name for spec in specs]
    assert len({clone.uuid for clone in clones}) == len(specs)


# --- policies of a volume


def test_a_clone_gets_its_policies(ontap: OntapScene) -> None:
    clone = ontap.make_clone()
    policy = ontap.make_policy()
    for _ in range(2):
        changed = ontap.gateway.set_volume_policies(
            clone.uuid, export_policy=policy.name
        )
        assert changed.export_policy == policy.name
        assert changed.snapshot_policy == "none"
    ontap.gateway.set_volume_policies(clone.uuid, export_policy="default")


def test_a_root_directory_gets_its_mode(ontap: OntapScene) -> None:
    clone = ontap.make_clone()
    before = ontap.gateway.get_volume(clone.uuid)

    for mode in ("700", "770", "770"):
        changed = ontap.gateway.set_volume_policies(clone.uuid, root_mode=mode)
        assert changed.root_mode == mode

    assert changed.export_policy == before.export_policy
    assert (changed.uid, changed.gid) == (before.uid, before.gid)


def test_a_policy_that_is_not_there_cannot_be_set(ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    with pytest.raises(NotFound):
        ontap.gateway.set_volume_policies(volume.uuid, export_policy="nobody_has_it")
    with pytest.raises(NotFound):
        ontap.gateway.set_volume_policies(NO_SUCH_UUID, export_policy="default")


# --- the namespace


def test_a_comment_is_set_and_emptied(ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    for comment in ("another", "another", "", volume.comment):
        changed = ontap.gateway.set_volume_comment(volume.uuid, comment=comment)
        assert changed == dataclasses.replace(volume, comment=comment)
    with pytest.raises(NotFound):
        ontap.gateway.set_volume_comment(NO_SUCH_UUID, comment="x")


def test_a_volume_has_another_size_and_more_inodes(ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    size = volume.size_bytes + 2**26
    for _ in range(2):
        changed = ontap.gateway.set_volume_size(volume.uuid, size_bytes=size)
        assert abs(changed.size_bytes - size) < SIZES_DIFFER_BYTES
    assert (changed.max_inodes or 0) >= size // 2**15 - 1
    most = most_inodes(changed.size_bytes)
    for _ in range(2):
        changed = ontap.gateway.set_max_inodes(volume.uuid, max_inodes=most)
        assert (changed.max_inodes or 0) >= most

    with pytest.raises(Refused):
        ontap.gateway.set_max_inodes(volume.uuid, max_inodes=2 * most)
    with pytest.raises(Refused):  # less than ONTAP's smallest
        ontap.gateway.set_volume_size(volume.uuid, size_bytes=2**20)
    with pytest.raises(NotFound):
        ontap.gateway.set_max_inodes(NO_SUCH_UUID, max_inodes=most)


def test_a_volume_has_other_settings(ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    wanted = VolumeSettings(
        autosize_mode="grow",
        autosize_max_bytes=2 * volume.size_bytes,
        snapshot_reserve_percent=20,
        fractional_reserve=0,
        security_style="mixed",
    )
    assert wanted.lacking_in(ontap.gateway.get_volume_settings(volume.uuid))
    for _ in range(2):
        changed = ontap.gateway.set_volume_settings(volume.uuid, wanted)
        assert not wanted.lacking_in(changed)
        assert changed.guarantee == "none"
    found = ontap.gateway.list_volume_settings(comment_prefix=volume.comment)
    assert found == {volume.uuid: changed}
    assert not ontap.gateway.list_volume_settings(comment_prefix=f"{volume.comment}x")
    with pytest.raises(Refused):
        ontap.gateway.set_volume_settings(
            volume.uuid, VolumeSettings(snapshot_reserve_percent=91)
        )
    with pytest.raises(NotFound):
        ontap.gateway.set_volume_settings(NO_SUCH_UUID, wanted)


def test_an_offline_volume_is_brought_online_unmounted_and_again(
    ontap: OntapScene,
) -> None:
    volume = ontap.make_volume()
    ontap.gateway._change_volume(
        volume.uuid,
        body={"state": "offline"},
        is_done=lambda changed: changed.state == "offline",
    )
    for _ in range(2):
        again = ontap.gateway.bring_volume_online(volume.uuid)
        assert (again.state, again.junction_path) == ("online", "")
    with pytest.raises(NotFound):
        ontap.gateway.bring_volume_online(NO_SUCH_UUID)


def test_a_volume_is_mounted_and_again(ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    path = f"/{volume.name}"
    for _ in range(2):
        mounted = ontap.gateway.mount_volume(volume.uuid, junction_path=path)
        assert mounted.junction_path == path


def test_a_junction_path_that_is_taken(ontap: OntapScene) -> None:
    first, second = ontap.make_volume("a"), ontap.make_volume("b")
    ontap.gateway.mount_volume(first.uuid, junction_path=f"/{first.name}")
    with pytest.raises(Refused):
        ontap.gateway.mount_volume(second.uuid, junction_path=f"/{first.name}")
    assert ontap.gateway.get_volume(second.uuid).junction_path == ""


@pytest.mark.parametrize("path", ["/nobody_has_this/ws", "", "no_slash", "/bad*"])
def test_a_junction_path_that_cannot_be(path: str, ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    with pytest.raises(Refused):
        ontap.gateway.mount_volume(volume.uuid, junction_path=path)
    assert ontap.gateway.get_volume(volume.uuid).junction_path == ""


def test_nothing_can_be_mounted_where_no_volume_is(ontap: OntapScene) -> None:
    with pytest.raises(NotFound):
        ontap.gateway.mount_volume(NO_SUCH_UUID, junction_path="/cytest_nothing")


def test_a_volume_is_unmounted_and_again(ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    ontap.gateway.mount_volume(volume.uuid, junction_path=f"/{volume.name}")
    for _ in range(2):
        ontap.gateway.unmount_volume(volume.uuid)
        assert ontap.gateway.get_volume(volume.uuid).junction_path == ""


def test_a_volume_that_is_gone_is_unmounted(ontap: OntapScene) -> None:
    ontap.gateway.unmount_volume(NO_SUCH_UUID)


# --- deletion


@pytest.mark.parametrize("force", [True, False])
def test_a_volume_is_deleted_and_again(force: bool, ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    for _ in range(2):
        ontap.gateway.delete_volume(volume.uuid, force=force)
        assert ontap.gateway.find_volume(volume.name) is None
        with pytest.raises(NotFound):
            ontap.gateway.get_volume(volume.uuid)


def test_a_mounted_volume_is_deleted_with_its_junction(ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    path = f"/{volume.name}"
    ontap.gateway.mount_volume(volume.uuid, junction_path=path)
    ontap.gateway.delete_volume(volume.uuid, force=True)
    again = ontap.make_volume()
    ontap.gateway.mount_volume(again.uuid, junction_path=path)


def test_a_volume_with_clones_stays(ontap: OntapScene) -> None:
    clone = ontap.make_clone()
    assert clone.clone_parent is not None
    parent_uuid = clone.clone_parent.volume_uuid
    with pytest.raises(InUse):
        ontap.gateway.delete_volume(parent_uuid, force=True)
    ontap.gateway.delete_volume(clone.uuid, force=True)
    ontap.gateway.delete_volume(parent_uuid, force=True)


@pytest.mark.parametrize("uuid", ["", "*", "not-a-uuid"])
@pytest.mark.parametrize(
    "verb",
    [
        lambda gateway, uuid: gateway.delete_volume(uuid, force=True),
        lambda gateway, uuid: gateway.unmount_volume(uuid),
        lambda gateway, uuid: gateway.delete_snapshot(NO_SUCH_UUID, snapshot_uuid=uuid),
    ],
    ids=["delete_volume", "unmount_volume", "delete_snapshot"],
)
def test_a_uuid_that_is_none_touches_nothing(
    uuid: str, verb: Callable[[OntapGateway, str], None], ontap: OntapScene
) -> None:
    volume = ontap.make_volume()
    with pytest.raises(ValueError):
        verb(ontap.gateway, uuid)
    assert ontap.gateway.get_volume(volume.uuid).state == "online"


# --- snapshots


def test_a_snapshot_is_taken(ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    snapshot = ontap.gateway.create_snapshot(
        volume.uuid, name="cl_7", comment="change 7"
    )
    assert snapshot.name == "cl_7"
    assert snapshot.comment == "change 7"
    assert snapshot.owners == ()
    assert snapshot.created_at is not None
    assert snapshot.created_at.utcoffset() is not None
    assert ontap.gateway.find_snapshot(volume.uuid, name="cl_7") == snapshot


def test_a_snapshot_that_is_not_there(ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    assert ontap.gateway.find_snapshot(volume.uuid, name="cl_8") is None
    assert ontap.gateway.list_snapshots(volume.uuid) == []


def test_snapshots_of_a_volume_that_is_not_there(ontap: OntapScene) -> None:
    with pytest.raises(NotFound):
        ontap.gateway.find_snapshot(NO_SUCH_UUID, name="cl_7")
    with pytest.raises(NotFound):
        ontap.gateway.list_snapshots(NO_SUCH_UUID)
    with pytest.raises(NotFound):
        ontap.gateway.create_snapshot(NO_SUCH_UUID, name="cl_7", comment="")


def test_snapshots_are_listed_oldest_first(ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    for name in ("cl_9", "cl_7", "cl_8"):
        ontap.make_snapshot(volume, name)
    snapshots = ontap.gateway.list_snapshots(volume.uuid)
    assert {each.name for each in snapshots} == {"cl_9", "cl_7", "cl_8"}
    times = [each.created_at or dt.datetime.max for each in snapshots]
    assert times == sorted(times)


def test_the_space_of_snapshots_is_listed(ontap: OntapScene) -> None:
    snapshot = ontap.make_snapshot(ontap.make_volume())
    found = {each.uuid: each for each in ontap.gateway.list_snapshot_space()}
    assert found[snapshot.uuid].size_bytes >= 0


def test_a_taken_snapshot_name(ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    ontap.make_snapshot(volume)
    with pytest.raises(AlreadyExists):
        ontap.make_snapshot(volume)


def test_a_snapshot_is_deleted_and_again(ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    snapshot = ontap.make_snapshot(volume)
    for _ in range(2):
        ontap.gateway.delete_snapshot(volume.uuid, snapshot_uuid=snapshot.uuid)
        assert ontap.gateway.find_snapshot(volume.uuid, name="cl_7") is None


def test_a_snapshot_of_a_volume_that_is_gone_is_deleted(ontap: OntapScene) -> None:
    ontap.gateway.delete_snapshot(NO_SUCH_UUID, snapshot_uuid=NO_SUCH_UUID)


def test_a_snapshot_with_a_clone_stays_until_the_clone_goes(ontap: OntapScene) -> None:
    clone = ontap.make_clone()
    assert clone.clone_parent is not None
    parent, snapshot = (
        clone.clone_parent.volume_uuid,
        clone.clone_parent.snapshot_uuid,
    )
    found = ontap.gateway.find_snapshot(parent, name="cl_7")
    assert found is not None
    assert found.owners
    with pytest.raises(InUse):
        ontap.gateway.delete_snapshot(parent, snapshot_uuid=snapshot)
    ontap.gateway.delete_volume(clone.uuid, force=True)
    ontap.gateway.delete_snapshot(parent, snapshot_uuid=snapshot)


# --- splits


def test_a_split_is_started_followed_and_frees_the_snapshot(ontap: OntapScene) -> None:
    clone = ontap.make_clone()
    assert clone.clone_parent is not None
    parent, snapshot = (
        clone.clone_parent.volume_uuid,
        clone.clone_parent.snapshot_uuid,
    )
    before = ontap.gateway.get_clone_split(clone.uuid)
    assert (before.is_clone, before.is_running, before.percent) == (True, False, None)
    assert before.estimate_bytes is not None

    ontap.gateway.start_clone_split(clone.uuid)

    def split() -> CloneSplit | None:
        seen = ontap.gateway.get_clone_split(clone.uuid)
        return None if seen.is_clone else seen

    assert wait_until(split, limit_seconds=60) is not None
    assert ontap.gateway.start_clone_split(clone.uuid).is_clone is False
    assert ontap.gateway.get_volume(clone.uuid).clone_parent is None
    ontap.gateway.delete_snapshot(parent, snapshot_uuid=snapshot)


def test_a_split_is_stopped_and_again(
    lab_ontap: OntapScene, lab_control: LabControl
) -> None:
    lab_control.set_settings(split_seconds=60.0)
    clone = lab_ontap.make_clone()
    assert lab_ontap.gateway.start_clone_split(clone.uuid).is_running
    assert lab_ontap.gateway.start_clone_split(clone.uuid).is_running

    for _ in range(2):
        stopped = lab_ontap.gateway.stop_clone_split(clone.uuid)
        assert (stopped.is_clone, stopped.is_running) == (True, False)


def test_a_volume_that_is_no_clone_needs_no_split(ontap: OntapScene) -> None:
    volume = ontap.make_volume()
    assert ontap.gateway.start_clone_split(volume.uuid).is_clone is False


# --- what volumes take


def test_what_a_clone_has_of_its_own_is_known(ontap: OntapScene) -> None:
    clone = ontap.make_clone()
    assert clone.clone_parent is not None

    usage = {each.uuid: each for each in ontap.gateway.list_volume_usage()}

    found = usage[clone.uuid]
    assert (found.name, found.comment) == (clone.name, clone.comment)
    assert found.parent_uuid == clone.clone_parent.volume_uuid
    assert found.parent_snapshot_uuid == clone.clone_parent.snapshot_uuid
    assert found.size_bytes == clone.size_bytes
    assert found.own_bytes is not None
    assert 0 <= found.own_bytes < SIZE_BYTES
    parent = usage[clone.clone_parent.volume_uuid]
    assert (parent.parent_uuid, parent.parent_snapshot_uuid) == ("", "")
    assert parent.snapshots == 1


def test_an_svm_may_have_a_limit_of_volumes(ontap: OntapScene) -> None:
    limit = ontap.gateway.max_volumes()
    assert limit is None or limit >= len(ontap.gateway.list_volume_usage())


# --- export policies


def test_an_export_policy_keeps_its_rules(ontap: OntapScene) -> None:
    rule = ExportRule(clients=("10.0.0.0/24", "10.0.1.5"), superuser=("none",))
    made = ontap.make_policy("policy", rule)
    assert made.rules == (rule,)
    assert ontap.gateway.find_export_policy(made.name) == made


def test_an_export_policy_gets_exactly_other_rules(ontap: OntapScene) -> None:
    policy = ontap.make_policy("policy", ExportRule(clients=("10.9.0.0/16",)))
    rules = (
        ExportRule(clients=("10.0.0.5",), superuser=("sys",)),
        ExportRule(clients=("10.0.0.0/24",), superuser=("none",)),
    )
    for _ in range(2):
        ontap.gateway.set_export_rules(policy.id, rules=rules)
        found = ontap.gateway.find_export_policy(policy.name)
        assert found is not None
        assert found.rules == rules


def test_an_export_policy_that_is_not_there(ontap: OntapScene) -> None:
    assert ontap.gateway.find_export_policy(ontap.name("nothing")) is None
    with pytest.raises(NotFound):
        ontap.gateway.set_export_rules(1, rules=())


def test_a_taken_export_policy_name(ontap: OntapScene) -> None:
    ontap.make_policy()
    with pytest.raises(AlreadyExists):
        ontap.make_policy()


def test_a_client_that_cannot_be(ontap: OntapScene) -> None:
    policy = ontap.make_policy()
    with pytest.raises(Refused):
        ontap.gateway.set_export_rules(
            policy.id, rules=(ExportRule(clients=("10.0.0.0/99",)),)
        )


# --- QoS policies


def test_a_qos_policy_limits_volumes_until_it_is_deleted(
    cluster_ontap: OntapScene,
) -> None:
    gateway = cluster_ontap.gateway
    spec = QosSpec(
        name=cluster_ontap.name("qos"), max_iops=500, max_mbps=0, is_shared=True
    )
    policy = gateway.create_qos_policy(spec)
    try:
        assert policy.spec == spec
        with pytest.raises(AlreadyExists):
            gateway.create_qos_policy(spec)
        cluster_ontap.make_snapshot(cluster_ontap.make_volume())
        clone = gateway.create_clone(cluster_ontap.clone_spec(qos_policy=spec.name))
        below = {each.uuid: each.policy for each in gateway.list_volume_qos()}
        assert below[clone.uuid] == spec.name
        changed = dataclasses.replace(spec, max_iops=0, max_mbps=20)
        assert gateway.set_qos_limits(policy.uuid, changed).spec == changed
        gateway.set_volume_qos(clone.uuid, policy="")
        with pytest.raises(GatewayError):
            gateway.set_volume_qos(clone.uuid, policy=cluster_ontap.name("none"))
    finally:
        gateway.delete_qos_policy(policy.uuid)
    assert gateway.find_qos_policy(spec.name) is None
    lost = gateway.create_clone(cluster_ontap.clone_spec("ws2", qos_policy=spec.name))
    assert lost.state == "online"


# --- deduplication


def test_duplicates_are_looked_for_once_and_stopped(lab_ontap: OntapScene) -> None:
    volume = lab_ontap.make_volume()
    gateway = lab_ontap.gateway
    seen = gateway.get_volume_efficiency(volume.uuid)
    assert (seen.is_enabled, seen.is_inline, seen.policy) == (False, False, "")

    gateway.start_deduplication(volume.uuid, scans_all=True)
    gateway.start_deduplication(volume.uuid, scans_all=True)

    ended = wait_until(
        lambda: next(
            (
                each
                for each in gateway.list_volume_efficiency()
                if each.uuid == volume.uuid and not each.is_scanning
            ),
            None,
        ),
        limit_seconds=60,
    )
    assert ended is not None
    assert (ended.is_enabled, ended.last_state) == (True, "success")
    assert ended.last_began_at is not None
    stopped = gateway.stop_deduplication(volume.uuid)
    assert stopped is not None
    assert not stopped.is_scanning
    assert gateway.stop_deduplication(NO_SUCH_UUID) is None


def test_a_policy_of_ontap_is_kept_as_wanted_and_assigned(
    lab_ontap: OntapScene,
) -> None:
    gateway, volume = lab_ontap.gateway, lab_ontap.make_volume()
    assert gateway.list_cron_schedules()["daily"] == "10 0 * * *"
    for hours in (2, 2, 4):
        policy = EfficiencyPolicy(name="nightly", schedule="daily", hours=hours)
        gateway.ensure_efficiency_policy(policy)
    for _ in range(2):
        gateway.set_efficiency_policy(volume.uuid, name="nightly")
    seen = gateway.get_volume_efficiency(volume.uuid)
    assert (seen.policy, seen.is_enabled) == ("nightly", True)
    gateway.set_efficiency_policy(volume.uuid, name="")
    assert gateway.get_volume_efficiency(volume.uuid).policy == ""
