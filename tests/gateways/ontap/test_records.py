"""ONTAP's JSON becomes our types, whatever it leaves out."""

from __future__ import annotations

import datetime as dt

from provisioner.gateways.ontap import records
from provisioner.gateways.ontap.types import (
    Aggregate,
    CloneParent,
    Cluster,
    DataLif,
    Efficiency,
    ExportPolicy,
    ExportRule,
    Reduction,
    Volume,
    VolumeSnapshot,
)

CLONE = {
    "uuid": "e3cb2bef-0f1c-11f0-8de9-0242ac120002",
    "name": "ws_alice",
    "state": "online",
    "comment": "cloneyard:v1:ws=12",
    "size": 107374182400,
    "create_time": "2026-03-02T10:11:12+00:00",
    "aggregates": [{"name": "aggr1", "uuid": "19425837-0f1c-11f0-8de9-0242ac120002"}],
    "snapshot_policy": {"name": "none"},
    "clone": {
        "is_flexclone": True,
        "parent_volume": {"name": "tmpl", "uuid": "9c1922a3"},
        "parent_snapshot": {"name": "cl_7", "uuid": "6f0a2807"},
    },
    "nas": {
        "path": "/ws/alice",
        "uid": 1001,
        "gid": 1002,
        "unix_permissions": 700,
        "export_policy": {"name": "developers"},
    },
    "guarantee": {"type": "none"},
    "space": {
        "used": 53687091200,
        "physical_used": 12582912,
        "snapshot": {"reserve_percent": 0},
    },
    "_links": {"self": {"href": "/api/storage/volumes/e3cb2bef"}},
}


def test_a_mounted_clone() -> None:
    assert records.volume(CLONE) == Volume(
        uuid="e3cb2bef-0f1c-11f0-8de9-0242ac120002",
        name="ws_alice",
        state="online",
        comment="cloneyard:v1:ws=12",
        size_bytes=107374182400,
        junction_path="/ws/alice",
        export_policy="developers",
        snapshot_policy="none",
        clone_parent=CloneParent(
            volume_name="tmpl",
            volume_uuid="9c1922a3",
            snapshot_name="cl_7",
            snapshot_uuid="6f0a2807",
        ),
        uid=1001,
        gid=1002,
        root_mode="700",
        guarantee="none",
        snapshot_reserve_percent=0,
        used_bytes=53687091200,
        aggregate="aggr1",
        created_at=dt.datetime(2026, 3, 2, 10, 11, 12, tzinfo=dt.UTC),
    )


def test_a_snapshot_reserve_is_not_free_for_files() -> None:
    fifth = {"used": 53687091200, "snapshot": {"reserve_percent": 20}}
    most = {"used": 53687091200, "snapshot": {"reserve_percent": 60}}
    assert records.volume(CLONE).free_bytes == 53687091200
    assert records.volume({**CLONE, "space": fifth}).free_bytes == 32212254720
    assert records.volume({**CLONE, "space": most}).free_bytes == 0
    unsaid = records.volume({"uuid": "9c1922a3", "name": "tmpl", "state": "offline"})
    assert unsaid.free_bytes is None


def test_an_offline_volume_leaves_most_things_unsaid() -> None:
    volume = records.volume({"uuid": "9c1922a3", "name": "tmpl", "state": "offline"})
    assert volume.junction_path == ""
    assert volume.clone_parent is None
    assert volume.uid is None
    assert volume.gid is None
    assert volume.snapshot_reserve_percent is None
    assert volume.used_bytes is None
    assert volume.created_at is None
    assert volume.aggregate == ""


def test_a_volume_that_says_it_is_no_clone() -> None:
    volume = records.volume({**CLONE, "clone": {"is_flexclone": False}})
    assert volume.clone_parent is None


def test_a_clone_whose_parent_does_not_show_yet() -> None:
    volume = records.volume({**CLONE, "clone": {"is_flexclone": True}})
    assert volume.clone_parent == CloneParent(
        volume_name="", volume_uuid="", snapshot_name="", snapshot_uuid=""
    )


def test_root_is_an_owner_and_not_an_unknown_one() -> None:
    volume = records.volume({**CLONE, "nas": {"uid": 0, "gid": 0}})
    assert (volume.uid, volume.gid) == (0, 0)


def test_a_cluster() -> None:
    record = {
        "name": "sim1",
        "version": {
            "full": "NetApp Release 9.16.1: Fri Jan 24 09:12:10 UTC 2025",
            "generation": 9,
            "major": 16,
            "minor": 1,
        },
    }
    assert records.cluster(record) == Cluster(
        name="sim1",
        version=(9, 16, 1),
    )


def test_an_aggregate() -> None:
    record = {
        "uuid": "19425837",
        "name": "aggr1",
        "space": {"block_storage": {"size": 1000, "available": 400, "used": 600}},
    }
    assert records.aggregate(record) == Aggregate(
        name="aggr1",
        uuid="19425837",
        size_bytes=1000,
        available_bytes=400,
        efficiency=None,
    )


def test_what_an_aggregate_saves() -> None:
    record = {
        "uuid": "19425837",
        "name": "aggr1",
        "space": {
            "block_storage": {"size": 1000, "available": 400, "used": 600},
            "efficiency": {"savings": 70, "ratio": 3.3, "logical_used": 100},
            "efficiency_without_snapshots": {"savings": 40, "logical_used": 60},
            "efficiency_without_snapshots_flexclones": {
                "savings": 10,
                "logical_used": 30,
            },
        },
    }

    efficiency = records.aggregate(record).efficiency
    assert efficiency == Efficiency(
        whole=Reduction(logical_bytes=100, saved_bytes=70),
        without_snapshots=Reduction(logical_bytes=60, saved_bytes=40),
        within=Reduction(logical_bytes=30, saved_bytes=10),
    )
    assert efficiency.whole.physical_bytes == 30


def test_a_snapshot_with_an_owner() -> None:
    record = {
        "uuid": "6f0a2807",
        "name": "cl_7",
        "comment": "",
        "create_time": "2026-03-02T10:10:59Z",
        "owners": ["volume_clone"],
    }
    assert records.snapshot(record) == VolumeSnapshot(
        uuid="6f0a2807",
        name="cl_7",
        comment="",
        created_at=dt.datetime(2026, 3, 2, 10, 10, 59, tzinfo=dt.UTC),
        owners=("volume_clone",),
    )


def test_a_snapshot_nobody_holds() -> None:
    assert records.snapshot({"uuid": "6f0a2807", "name": "cl_7"}).owners == ()


def test_an_export_policy() -> None:
    record = {
        "id": 8589934601,
        "name": "developers",
        "rules": [
            {
                "index": 1,
                "clients": [{"match": "10.0.0.0/24"}, {"match": "10.0.1.5"}],
                "protocols": ["nfs"],
                "ro_rule": ["sys"],
                "rw_rule": ["sys"],
                "superuser": ["none"],
                "allow_suid": False,
                "allow_device_creation": False,
            }
        ],
    }
    assert records.export_policy(record) == ExportPolicy(
        id=8589934601,
        name="developers",
        rules=(ExportRule(clients=("10.0.0.0/24", "10.0.1.5"), superuser=("none",)),),
    )


def test_a_rule_that_says_nothing_lets_set_uid_files_and_devices_through() -> None:
    """As ONTAP's own default does: a rule of ours that lost its words is drift."""
    policy = records.export_policy(
        {"id": 1, "name": "p", "rules": [{"clients": [{"match": "10.0.0.0/24"}]}]}
    )
    [rule] = policy.rules
    assert (rule.allow_suid, rule.allow_device_creation) == (True, True)


def test_an_export_policy_without_rules() -> None:
    assert records.export_policy({"id": 3, "name": "closed"}).rules == ()


def test_a_data_lif_is_up_when_it_says_so_and_is_not_disabled() -> None:
    record = {"name": "nfs1", "ip": {"address": "10.1.2.31"}, "state": "up"}
    assert records.data_lif(record) == DataLif(
        name="nfs1", address="10.1.2.31", is_up=True
    )
    assert not records.data_lif({**record, "enabled": False}).is_up
    assert not records.data_lif({**record, "state": "down"}).is_up
    assert not records.data_lif({"name": "nfs1"}).is_up
