"""The lab's ONTAP, driven by NetApp's own client, resource by resource."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from netapp_ontap import HostConnection, NetAppRestError
from netapp_ontap.resources import (
    Aggregate,
    Cluster,
    ExportPolicy,
    ExportRule,
    IpInterface,
    Job,
    LicensePackage,
    Node,
    QuotaReport,
    QuotaRule,
    SnapmirrorPolicy,
    SnapmirrorRelationship,
    SnapmirrorTransfer,
    Snapshot,
    SnapshotPolicy,
    SnapshotPolicySchedule,
    Svm,
    SvmPeer,
    Volume,
)

from provisioner.lab.ontap.server import OntapConfig, OntapLab


@pytest.fixture(scope="module")
def client_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OntapLab]:
    root = tmp_path_factory.mktemp("client-lab")
    with OntapLab(OntapConfig(root, password="secret", more_svms=("svm_dr",))) as lab:
        yield lab


@pytest.fixture
def client(client_lab: OntapLab) -> Iterator[HostConnection]:
    connection = HostConnection(
        "127.0.0.1",
        port=client_lab.port,
        username="admin",
        password="secret",
        verify=str(client_lab.ca_file),
        poll_interval=0.05,
    )
    connection.session.trust_env = False
    with connection:
        yield connection
        clones_first = sorted(
            Volume.get_collection(fields="clone,is_svm_root"),
            key=lambda volume: not volume.clone.is_flexclone,
        )
        for volume in clones_first:
            if not volume.is_svm_root:
                volume.delete(force=True)
        connection.session.close()


def make_volume(name: str, **fields: object) -> Volume:
    volume = Volume(
        name=name,
        svm=fields.pop("svm", {"name": "svm_dev"}),
        aggregates=[{"name": "aggr1"}],
        guarantee={"type": "none"},
        **fields,
    )
    volume.post(poll=True)
    return volume


def make_clone(name: str, parent: str, **fields: object) -> Volume:
    clone = {"is_flexclone": True, "parent_volume": {"name": parent}}
    clone.update(fields.pop("clone", {}))  # type: ignore[call-overload]
    svm = fields.pop("svm", {"name": "svm_dev"})
    volume = Volume(name=name, svm=svm, clone=clone, **fields)
    volume.post(poll=True)
    return volume


pytestmark = pytest.mark.usefixtures("client")


def test_cluster() -> None:
    cluster = Cluster()
    cluster.get(fields="version")
    assert (cluster.version.generation, cluster.version.major) == (9, 16)


def test_node_and_licenses() -> None:
    (node,) = Node.get_collection(fields="version,state")
    assert (node.state, node.version.generation) == ("up", 9)
    node.get()
    license = LicensePackage.find(name="flexclone")
    assert (license.state, license.scope) == ("compliant", "node")
    license.get()
    assert license.licenses[0].owner == node.name


@pytest.mark.filterwarnings("ignore:`Number` field should not be")
def test_svm_aggregate_and_interface() -> None:
    svm = Svm.find(name="svm_dev")
    assert svm.state == "running"
    svm.get(fields="*")
    aggregate = Aggregate.find(name="aggr1", fields="space,node")
    assert aggregate.space.block_storage.size > 0
    (lif,) = IpInterface.get_collection(
        **{"svm.name": "svm_dev", "services": "data_nfs"}, fields="ip.address"
    )
    assert lif.ip.address == "127.0.0.1"
    policy = SnapshotPolicy.find(name="none", fields="name,svm.name")
    policy.get()
    assert policy.name == "none"


def test_volume_lifecycle(client_lab: OntapLab) -> None:
    volume = make_volume(
        "v",
        size=1 << 30,
        nas={"path": "/v", "unix_permissions": "0750"},
        comment="hello",
    )
    assert (client_lab.mount_root / "v").stat().st_mode & 0o777 == 0o750
    volume.get(fields="nas,comment,size,space,svm")
    assert (volume.nas.path, volume.comment, volume.size) == ("/v", "hello", 1 << 30)
    volume.comment = "bye"
    volume.patch(poll=True)
    volume.nas = {"path": ""}
    volume.patch(poll=True)
    again = Volume.find(name="v", **{"svm.name": "svm_dev"})
    assert again.comment == "bye"
    again.get(fields="nas.path")
    assert "nas" not in again.to_dict()
    assert Volume.count_collection(name="v*") == 1
    volume.delete(poll=True, force=True, return_timeout=30)
    assert Volume.find(name="v") is None


def test_hydrated_post() -> None:
    volume = Volume(
        name="h",
        svm={"name": "svm_dev"},
        aggregates=[{"name": "aggr1"}],
        guarantee={"type": "none"},
    )
    volume.post(hydrate=True, return_timeout=30, return_records=True)
    assert volume.state == "online"


def test_pages() -> None:
    for number in range(5):
        make_volume(f"p{number}")
    found = Volume.get_collection(fields="name,nas.path", max_records=2, name="p*")
    assert [volume.name for volume in found] == [f"p{n}" for n in range(5)]


def test_changes_by_query() -> None:
    for name in ("q1", "q2", "other"):
        make_volume(name)
    Volume.patch_collection({"comment": "marked"}, name="q*")
    assert Volume.count_collection(comment="marked") == 2
    Volume.delete_collection(comment="marked", force=True)
    assert Volume.count_collection(name="q*") == 0
    assert Volume.count_collection(name="other") == 1


def test_clone_and_split(client_lab: OntapLab) -> None:
    template = make_volume("t", nas={"path": "/t"})
    (client_lab.mount_root / "t" / "file").write_text("x")
    snapshot = Snapshot(template.uuid, name="s", comment="c")
    snapshot.post(poll=True)
    clone = make_clone(
        "c",
        "t",
        clone={"parent_snapshot": {"name": "s"}},
        nas={"path": "/c", "uid": 1001, "gid": 1002},
        guarantee={"type": "none"},
        comment="mine",
    )
    file = client_lab.mount_root / "c" / "file"
    assert file.read_text() == "x"
    if os.geteuid() == 0:
        assert (file.stat().st_uid, file.stat().st_gid) == (1001, 1002)
    with pytest.raises(NetAppRestError, match="has not expired or is locked"):
        snapshot.delete(poll=True)
    with pytest.raises(NetAppRestError, match="one or more clones"):
        template.delete(poll=True)
    clone.clone = {"split_initiated": True}
    clone.nas = {"path": "/moved"}
    clone.patch(poll=True, return_timeout=15)
    for _ in range(100):
        clone.get(fields="clone")
        if not clone.clone.is_flexclone:
            break
    snapshot.delete(poll=True)
    assert (client_lab.mount_root / "moved" / "file").read_text() == "x"


def test_clone_refusals() -> None:
    make_volume("t")
    with pytest.raises(NetAppRestError) as raised:
        make_clone("c", "t", nas={"uid": 0, "gid": 0})
    assert raised.value.response_body["error"]["code"] == "13565983"
    with pytest.raises(NetAppRestError) as raised:
        make_clone("c", "t", size=1 << 30)
    assert raised.value.response_body["error"]["code"] == "918247"


def test_snapshots_and_restore(client_lab: OntapLab) -> None:
    volume = make_volume("v", nas={"path": "/v"})
    file = client_lab.mount_root / "v" / "file"
    file.write_text("then")
    Snapshot(volume.uuid, name="s").post(poll=True)
    file.write_text("now")
    found = Snapshot.find(volume.uuid, name="s")
    for listed in Snapshot.get_collection(volume.uuid):
        listed.get()
        assert listed.name == "s"
        assert listed.create_time
        assert "owners" not in listed.to_dict()
    restored = Volume(uuid=volume.uuid)
    query = {"restore_to.snapshot.name": "s", "restore_to.snapshot.uuid": found.uuid}
    restored.patch(poll=True, **query)
    assert file.read_text() == "then"
    found.name = "t"
    found.patch(poll=True)
    found.delete(poll=True)
    assert Snapshot.find(volume.uuid, name="t") is None


def test_offline_and_online(client_lab: OntapLab) -> None:
    volume = make_volume("v", nas={"path": "/v"})
    volume.state = "offline"
    volume.patch(poll=True)
    assert not (client_lab.mount_root / "v").exists()
    volume.state = "online"
    volume.patch(poll=True)
    volume.get()
    assert volume.state == "online"


def test_export_policies() -> None:
    rule = {
        "clients": [{"match": "10.0.0.0/24"}],
        "ro_rule": ["sys"],
        "rw_rule": ["sys"],
        "superuser": ["none"],
    }
    policy = ExportPolicy(name="p", svm={"name": "svm_dev"}, rules=[rule])
    policy.post()
    found = ExportPolicy.find(name="p")
    assert found.rules[0].clients[0].match == "10.0.0.0/24"
    added = ExportRule(
        found.id, clients=[{"match": "10.1.1.1"}], ro_rule=["any"], rw_rule=["any"]
    )
    added.post(hydrate=True)
    assert len(list(ExportRule.get_collection(found.id))) == 2
    ExportRule(found.id, index=2).delete()
    volume = make_volume("v", nas={"export_policy": {"name": "p"}})
    with pytest.raises(NetAppRestError) as raised:
        found.delete()
    assert raised.value.response_body["error"]["code"] == "1703945"
    volume.delete(poll=True, force=True)
    found.delete()
    assert ExportPolicy.find(name="p") is None


@pytest.mark.filterwarnings("ignore:`Number` field should not be")
def test_snapshot_policies() -> None:
    policy = SnapshotPolicy(
        name="new_policy",
        comment="policy comment",
        svm={"name": "svm_dev"},
        copies=[{"schedule": {"name": "5min"}, "count": "5", "prefix": "xyz"}],
    )
    policy.post(hydrate=True)
    assert (policy.scope, policy.enabled) == ("svm", True)
    assert policy.copies[0].count == 5
    policy.enabled = False
    policy.patch()
    schedule = SnapshotPolicySchedule(policy.uuid, count=1, schedule={"name": "daily"})
    schedule.post(hydrate=True)
    assert schedule.prefix == "daily"
    rows = SnapshotPolicySchedule.get_collection(policy.uuid, fields="count")
    assert sorted(row.count for row in rows) == [1, 5]
    volume = make_volume("v", snapshot_policy={"name": "new_policy"})
    with pytest.raises(NetAppRestError) as refused:
        policy.delete()
    assert refused.value.response_body["error"]["code"] == "1638415"
    volume.delete(force=True)
    policy.delete()
    assert SnapshotPolicy.find(name="new_policy") is None


def test_svm_peers() -> None:
    query = {"svm.name": "svm_dev", "peer.svm.name": "svm_dr"}
    peer = SvmPeer.find(**query)
    peer.delete()
    assert SvmPeer.find(**query) is None
    again = SvmPeer(
        svm={"name": "svm_dev"},
        peer={"svm": {"name": "svm_dr"}},
        applications=["snapmirror"],
    )
    again.post(hydrate=True)
    assert again.state == "peered"
    again.state = "suspended"
    again.patch()
    again.get()
    assert again.state == "suspended"
    again.state = "peered"
    again.patch()


def test_jobs() -> None:
    make_volume("v")
    jobs = list(Job.get_collection(description="*name=v", fields="*"))
    assert jobs[-1].state == "success"
    jobs[-1].get()
    assert jobs[-1].end_time


def test_a_duplicate_name_is_an_error_with_its_code() -> None:
    make_volume("v")
    with pytest.raises(NetAppRestError) as raised:
        make_volume("v")
    assert raised.value.status_code == 409
    assert raised.value.response_body["error"]["code"] == "917526"


def test_wrong_password(client_lab: OntapLab) -> None:
    stranger = HostConnection(
        "127.0.0.1",
        port=client_lab.port,
        username="admin",
        password="wrong",
        verify=str(client_lab.ca_file),
    )
    stranger.session.trust_env = False
    with stranger, pytest.raises(NetAppRestError) as raised:
        Cluster().get()
    stranger.session.close()
    assert raised.value.status_code == 401
    assert Path(client_lab.ca_file).exists()


def test_snapmirror(client_lab: OntapLab) -> None:
    template = make_volume("t", nas={"path": "/t"})
    (client_lab.mount_root / "t" / "file").write_text("x")
    Snapshot(template.uuid, name="s").post(poll=True)
    make_volume("dst", svm={"name": "svm_dr"}, type="dp")
    (peer,) = SvmPeer.get_collection(**{"svm.name": "svm_dr"}, fields="peer,state")
    assert (peer.peer.svm.name, peer.state) == ("svm_dev", "peered")
    assert SnapmirrorPolicy.find(name="MirrorAllSnapshots").type == "async"
    policy = SnapmirrorPolicy(
        name="keep", type="async", retention=[{"label": "fc", "count": 3}]
    )
    policy.post(poll=True)
    policy.get()
    assert policy.retention[0].count == "3"
    relationship = SnapmirrorRelationship(
        source={"path": "svm_dev:t"},
        destination={"path": "svm_dr:dst"},
        policy={"name": "MirrorAllSnapshots"},
    )
    relationship.post(poll=True)
    relationship.state = "snapmirrored"
    relationship.patch(poll=True)
    wait_until_mirrored(relationship)
    Snapshot(template.uuid, name="s2").post(poll=True)
    SnapmirrorTransfer(relationship.uuid, source_snapshot="s2").post()
    wait_until_mirrored(relationship)
    transfers = list(SnapmirrorTransfer.get_collection(relationship.uuid, fields="*"))
    assert [transfer.state for transfer in transfers] == ["success", "success"]
    assert relationship.exported_snapshot == "s2"
    clone = make_clone(
        "c", "dst", svm={"name": "svm_dr"}, clone={"parent_snapshot": {"name": "s"}}
    )
    clone.delete(poll=True, force=True)
    (known,) = SnapmirrorRelationship.get_collection(
        list_destinations_only=True, **{"source.path": "svm_dev:t"}
    )
    assert known.uuid == relationship.uuid
    for state in ("paused", "broken_off"):
        relationship.state = state
        relationship.patch(poll=True)
    relationship.get()
    assert relationship.state == "broken_off"
    relationship.delete(poll=True)
    policy.delete(poll=True)
    assert SnapmirrorRelationship.find(**{"destination.path": "svm_dr:dst"}) is None


def wait_until_mirrored(relationship: SnapmirrorRelationship) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        relationship.get()
        if relationship.transfer.state == "success":
            assert relationship.state == "snapmirrored"
            return
        time.sleep(0.05)
    raise AssertionError("the transfer has no end")


@pytest.mark.filterwarnings("ignore:`Number` field should not be")
def test_efficiency(client_lab: OntapLab) -> None:
    volume = make_volume("v", nas={"path": "/v"})
    data = os.urandom(65536)
    for name in ("a", "b"):
        (client_lab.mount_root / "v" / name).write_bytes(data)
    volume.efficiency = {"dedupe": "background", "scanner": {"state": "active"}}
    volume.patch(poll=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        volume.get(fields="efficiency")
        if volume.efficiency.op_state == "idle":
            break
        time.sleep(0.05)
    assert volume.efficiency.space_savings.dedupe == 65536
    assert volume.efficiency.state == "enabled"


def test_quotas(client_lab: OntapLab) -> None:
    volume = make_volume("v", nas={"path": "/v"})
    owner = os.geteuid()
    (client_lab.mount_root / "v" / "file").write_bytes(b"x" * 65536)
    rule = QuotaRule(
        svm={"name": "svm_dev"},
        volume={"name": "v"},
        type="user",
        users=[{"id": str(owner)}],
        space={"hard_limit": 1 << 20},
    )
    rule.post(poll=True, hydrate=True)
    volume.quota = {"enabled": True}
    volume.patch(poll=True)

    volume.get(fields="quota.state")
    assert volume.quota.state == "on"
    [used] = QuotaReport.get_collection(fields="*", **{"volume.name": "v"})
    assert (used.users[0].id, used.space.hard_limit) == (str(owner), 1 << 20)
    assert used.space.used.total >= 65536
    rule.space = {"hard_limit": 2 << 20}
    rule.patch(poll=True)
    assert QuotaRule(uuid=rule.uuid).get(fields="space").is_err is False
    rule.delete(poll=True)
    assert [
        each.users[0].name for each in QuotaRule.get_collection(fields="users")
    ] == [""]
