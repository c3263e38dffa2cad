"""What the modules of NetApp's Ansible collection send, and what they need back.

Source: netapp.ontap 23.6.0, its modules with ``use_rest: always``. Every module asks
for the cluster's version first, reads the job without fields, and sends dotted keys.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.mirrored_labs import MirroredLabs
from tests.support.ontap_rest import Rest, empty, rest_to

VOLUMES = "/api/storage/volumes"
EXPORTS = "/api/protocols/nfs/export-policies"
RELATIONSHIPS = "/api/snapmirror/relationships"
READ = (
    "encryption.enabled,tiering.policy,tiering.object_tags,nas.export_policy.name,"
    "aggregates.name,aggregates.uuid,uuid,nas.path,style,type,comment,qos.policy.name,"
    "nas.security_style,nas.gid,nas.unix_permissions,nas.uid,snapshot_policy,"
    "space.snapshot.reserve_percent,space.size,guarantee.type,state,"
    "efficiency.compression,snaplock,files.maximum,space.logical_space.enforcement,"
    "space.logical_space.reporting,"
)
RULE = (
    "anonymous_user,clients,index,protocols,ro_rule,rw_rule,superuser,"
    "ntfs_unix_security,allow_suid,chown_mode,allow_device_creation"
)
MIRROR = (
    "uuid,state,transfer.state,transfer.uuid,policy.name,policy.type,"
    "unhealthy_reason.message,healthy,source,transfer_schedule"
)
KEPT = (
    "uuid,name,svm.name,comment,network_compression_enabled,type,retention,"
    "identity_preservation,sync_type,transfer_schedule,copy_all_source_snapshots,"
    "copy_latest_source_snapshot,create_snapshot_on_source"
)
WAIT = {"return_timeout": 30}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OntapLab]:
    root = tmp_path_factory.mktemp("ansible")
    config = OntapConfig(root, password="secret", svm="svm1", more_svms=("svm2",))
    with OntapLab(config) as lab:
        yield lab


@pytest.fixture
def module(running: OntapLab) -> Iterator[Rest]:
    rest = rest_to(running)
    version = rest.get("/api/cluster", fields="version")["version"]
    assert {"generation", "major", "minor", "full"} <= set(version)
    yield rest
    for row in rest.get(RELATIONSHIPS)["records"]:
        rest.done("DELETE", f"{RELATIONSHIPS}/{row['uuid']}")
    empty(rest)
    rest.session.close()


def write(
    rest: Rest, method: str, path: str, body: Any = None, **query: Any
) -> dict[str, Any]:
    """Send a write as the collection does, and read its job as it does."""
    response = rest(method, path, body, **WAIT, **query)
    assert response.status_code in (200, 201), response.text
    answer: dict[str, Any] = response.json()
    if "job" in answer:
        href = answer["job"]["_links"]["self"]["href"]
        assert href.startswith("/api/cluster/jobs/")
        assert rest.get(href)["state"] == "success"
    return answer


def only(rest: Rest, path: str, **query: Any) -> dict[str, Any]:
    answer = rest.get(path, **query)
    assert answer["num_records"] == 1
    record: dict[str, Any] = answer["records"][0]
    return record


def make_volume(rest: Rest, name: str, svm: str = "svm1", **more: Any) -> str:
    body = {
        "name": name,
        "svm.name": svm,
        "guarantee.type": "none",
        "aggregates": [{"name": "aggr1"}],
        "size": 10737418240,
        "snapshot_policy.name": "none",
        **more,
    }
    write(rest, "POST", VOLUMES, body)
    uuid: str = only(rest, VOLUMES, name=name, **{"svm.name": svm})["uuid"]
    return uuid


def test_na_ontap_volume(module: Rest) -> None:
    assert only(module, "/api/svm/svms", name="svm1", fields="uuid")["uuid"]
    query = {"name": "av1", "svm.name": "svm1", "fields": READ}
    assert module.get(VOLUMES, **query)["num_records"] == 0
    how: dict[str, Any] = {
        "nas.unix_permissions": "755",
        "nas.gid": 1001,
        "nas.uid": 1001,
        "nas.export_policy.name": "default",
        "nas.path": "/av1",
        "comment": "x",
        "type": "rw",
        "space.snapshot.reserve_percent": 0,
        "state": "online",
    }
    uuid = make_volume(module, "av1", **how)
    found = only(module, VOLUMES, **query)
    assert found["nas"]["unix_permissions"] == 755
    assert (found["nas"]["uid"], found["nas"]["path"]) == (1001, "/av1")
    assert found["space"]["snapshot"]["reserve_percent"] == 0
    assert found["guarantee"]["type"] == "none"
    path = f"{VOLUMES}/{uuid}"
    write(module, "PATCH", path, {"comment": "y", "state": "online"})
    write(
        module,
        "PATCH",
        path,
        {"size": 21474836480},
        sizing_method="use_existing_resources",
    )
    write(module, "PATCH", path, {"nas.path": ""})
    assert "path" not in only(module, VOLUMES, **query)["nas"]
    write(module, "PATCH", path, {"state": "offline"})
    assert only(module, VOLUMES, **query)["state"] == "offline"
    write(module, "DELETE", path)
    assert module.get(VOLUMES, **query)["num_records"] == 0


def test_na_ontap_volume_clone(module: Rest) -> None:
    source = make_volume(module, "src_vol")
    snapshots = f"{VOLUMES}/{source}/snapshots"
    write(module, "POST", snapshots, {"name": "snap1"})
    query = {"name": "ac1", "svm.name": "svm1", "fields": "clone.is_flexclone,uuid"}
    assert module.get(VOLUMES, **query)["num_records"] == 0
    body = {
        "name": "ac1",
        "clone.parent_volume.name": "src_vol",
        "clone.is_flexclone": True,
        "svm.name": "svm1",
        "clone.parent_snapshot.name": "snap1",
        "nas.path": "/ac1",
        "nas.uid": 1001,
        "nas.gid": 1001,
    }
    answer = write(module, "POST", VOLUMES, body, return_records="true")
    uuid = answer["records"][0]["uuid"]
    assert only(module, VOLUMES, **query)["clone"]["is_flexclone"] is True
    write(module, "PATCH", f"{VOLUMES}/{uuid}", {"clone.split_initiated": True})
    later = {**body, "name": "ac2", "nas.path": "/ac2"}
    response = module("POST", VOLUMES, later, return_timeout=0, return_records="true")
    assert response.status_code == 202
    assert module.job(response.json()["job"]["uuid"])["state"] == "success"


def test_na_ontap_snapshot(module: Rest) -> None:
    make_volume(module, "src_vol")
    volume = only(module, VOLUMES, name="src_vol", **{"svm.name": "svm1"})["uuid"]
    path = f"{VOLUMES}/{volume}/snapshots"
    query = {
        "svm.name": "svm1",
        "fields": "uuid,comment,expiry_time,volume,name,snapmirror_label",
        "name": "as1",
    }
    assert module.get(path, **query)["num_records"] == 0
    body = {
        "name": "as1",
        "svm": {"name": "svm1"},
        "comment": "hi",
        "snapmirror_label": "lbl",
    }
    write(module, "POST", path, body)
    found = only(module, path, **query)
    assert (found["comment"], found["snapmirror_label"]) == ("hi", "lbl")
    write(module, "PATCH", f"{path}/{found['uuid']}", {"comment": "hi2"})
    assert only(module, path, **query)["comment"] == "hi2"
    write(module, "DELETE", f"{path}/{found['uuid']}")
    assert module.get(path, **query)["num_records"] == 0


def test_na_ontap_volume_efficiency(module: Rest) -> None:
    uuid = make_volume(module, "src_vol")
    query = {"svm.name": "svm1", "fields": "uuid,efficiency"}
    found = only(module, VOLUMES, name="src_vol", **query)["efficiency"]
    assert {"state", "dedupe", "compression", "policy", "op_state"} <= set(found)
    body = {
        "efficiency.dedupe": "background",
        "efficiency.scanner.state": "active",
        "efficiency.scanner.scan_old_data": True,
    }
    write(module, "PATCH", f"{VOLUMES}/{uuid}", body)
    by_path = {"efficiency.volume_path": "/vol/src_vol", **query}
    assert only(module, VOLUMES, **by_path)["efficiency"]["state"] == "enabled"


def mirror(rest: Rest, path: str = "svm2:dst_vol") -> dict[str, Any]:
    """Read the relationship until no transfer runs, as the module waits."""
    query = {"destination.path": path, "fields": MIRROR}
    for _ in range(200):
        found = only(rest, RELATIONSHIPS, **query)
        if found.get("transfer", {}).get("state") not in ("queued", "transferring"):
            return found
        time.sleep(0.05)
    raise AssertionError("the transfer has no end")


def test_na_ontap_snapmirror(module: Rest) -> None:
    make_volume(module, "src_vol")
    make_volume(module, "dst_vol", "svm2", type="dp")
    query = {"destination.path": "svm2:dst_vol", "fields": MIRROR}
    assert module.get(RELATIONSHIPS, **query)["num_records"] == 0
    body = {
        "source": {"path": "svm1:src_vol"},
        "destination": {"path": "svm2:dst_vol"},
        "policy": {"name": "MirrorAllSnapshots"},
        "transfer_schedule": {"name": "hourly"},
    }
    write(module, "POST", RELATIONSHIPS, body)
    path = f"{RELATIONSHIPS}/{mirror(module)['uuid']}"
    write(module, "PATCH", path, {"state": "snapmirrored"})
    found = mirror(module)
    assert (found["state"], found["healthy"]) == ("snapmirrored", True)
    assert (found["policy"]["type"], found["transfer"]["state"]) == ("async", "success")
    peers = {"name": "svm1", "svm.name": "svm2", "fields": "peer"}
    assert only(module, "/api/svm/peers", **peers)["peer"]["svm"]["name"] == "svm1"
    write(module, "PATCH", path, {"policy": {"name": "MirrorLatest"}})
    assert module("POST", f"{path}/transfers", {}, **WAIT).status_code == 201
    assert mirror(module)["policy"]["name"] == "MirrorLatest"
    for state in ("paused", "broken_off"):
        write(module, "PATCH", path, {"state": state})
        assert mirror(module)["state"] == state
    write(module, "DELETE", path)
    assert module.get(RELATIONSHIPS, **query)["num_records"] == 0


def test_na_ontap_snapshot_policy(module: Rest) -> None:
    policies = "/api/storage/snapshot-policies"
    fields = (
        "enabled,svm.uuid,comment,copies.snapmirror_label,copies.count,copies.prefix,"
        "copies.schedule.name,scope,"
    )
    query = {"name": "ap", "svm.name": "svm1", "scope": "svm", "fields": fields}
    assert module.get(policies, **query)["num_records"] == 0
    daily = {"schedule": {"name": "daily"}, "count": 5, "snapmirror_label": "d"}
    copies = [daily, {"schedule": {"name": "hourly"}, "count": 3}]
    body = {"name": "ap", "enabled": True, "svm.name": "svm1", "copies": copies}
    assert module("POST", policies, body, **WAIT).status_code == 201
    row = only(module, policies, **query)
    read = [
        (item["count"], item["prefix"], item["schedule"]["name"])
        for item in row["copies"]
    ]
    assert read == [(5, "daily", "daily"), (3, "hourly", "hourly")]
    assert [item["snapmirror_label"] for item in row["copies"]] == ["d", "-"]
    assert row["svm"]["uuid"]
    path = f"{policies}/{row['uuid']}"
    assert module("PATCH", path, {"enabled": False, "comment": "c"}, **WAIT).ok
    asked = "schedule.name,schedule.uuid,snapmirror_label,count,prefix,"
    found = module.get(
        f"{path}/schedules",
        fields=f"{asked}retention_period,",
        **{"snapshot_policy.name": "ap"},
    )["records"]
    uuids = {item["schedule"]["name"]: item["schedule"]["uuid"] for item in found}
    assert {item["retention_period"] for item in found} == {"PT0S"}
    assert module("DELETE", f"{path}/schedules/{uuids['hourly']}", **WAIT).ok
    change = {"count": "6", "prefix": "dd"}
    assert module("PATCH", f"{path}/schedules/{uuids['daily']}", change, **WAIT).ok
    added = {"schedule.name": "weekly", "count": "1", "prefix": "w"}
    assert module("POST", f"{path}/schedules", added, **WAIT).status_code == 201
    row = only(module, policies, **query)
    assert [(item["count"], item["prefix"]) for item in row["copies"]] == [
        (6, "dd"),
        (1, "w"),
    ]
    assert module("DELETE", path, **WAIT).ok


def test_na_ontap_vserver_peer(module: Rest) -> None:
    peers = "/api/svm/peers"
    query = {
        "svm.name": "svm1",
        "peer.svm.name": "svm2",
        "fields": "svm.name,peer.svm.name,state,uuid",
    }
    row = only(module, peers, **query)
    assert (row["state"], row["peer"]["svm"]["name"]) == ("peered", "svm2")
    write(module, "DELETE", f"{peers}/{row['uuid']}")
    assert module.get(peers, **query)["num_records"] == 0
    cluster = module.get("/api/cluster", fields="name")["name"]
    body = {
        "svm.name": "svm1",
        "peer.cluster.name": cluster,
        "peer.svm.name": "svm2",
        "applications": ["snapmirror"],
    }
    write(module, "POST", peers, body)
    assert only(module, peers, **query)["state"] == "peered"


def test_na_ontap_export_policy_and_rule(module: Rest) -> None:
    query = {"fields": "name,id", "svm.name": "svm1", "name": "aep"}
    assert module.get(f"{EXPORTS}/", **query)["num_records"] == 0
    body = {"name": "aep", "svm.name": "svm1"}
    assert module("POST", EXPORTS, body, **WAIT).status_code == 201
    policy = only(module, f"{EXPORTS}/", **query)["id"]
    rules = f"{EXPORTS}/{policy}/rules"
    missing = module("GET", f"{rules}/1", fields=RULE)
    assert (missing.status_code, module.code(missing)) == (404, "4")
    assert "entry doesn't exist" in missing.text
    rule = {
        "index": 1,
        "clients": [{"match": "10.0.0.0/8"}],
        "protocols": ["nfs"],
        "ro_rule": ["sys"],
        "rw_rule": ["sys"],
        "superuser": ["none"],
    }
    made = module("POST", rules, rule, return_records="true", **WAIT)
    assert made.status_code == 201
    assert made.json()["records"][0]["index"] == 1
    assert module.get(f"{rules}/1", fields=RULE)["rw_rule"] == ["sys"]
    module("POST", rules, {**rule, "index": 2, "clients": [{"match": "10.1.1.1"}]})
    assert module("PATCH", f"{rules}/1", {}, new_index=2).status_code == 200
    assert module("DELETE", f"{rules}/1").status_code == 200
    assert module("DELETE", f"{EXPORTS}/{policy}", **WAIT).status_code == 200


def test_na_ontap_snapmirror_has_nothing_to_change_in_a_mirror_of_ours(
    mirrored_labs: MirroredLabs,
) -> None:
    """With `update: false`, as the module otherwise transfers each time it runs.

    Tried with the collection itself: relationship, policy and peer are unchanged.
    """
    labs, policy = mirrored_labs, "cloneyard-keep-10"
    if not labs.there.has_mirror_policy(policy):
        labs.there.create_mirror_policy(policy, label="cloneyard", keep=10)
    labs.make_volume()
    made = labs.there.create_relationship(
        "tmpl_dst", source_path=labs.source_path, policy=policy
    )
    labs.there.start_transfer(made.uuid, snapshot="cl_7")
    rest = rest_to(labs.destination.lab)

    path = f"{labs.destination.lab.config.svm}:tmpl_dst"
    found = mirror(rest, path)
    asked = {"name": policy, "scope": "svm", "svm.name": "svm_far", "fields": KEPT}
    kept = only(rest, "/api/snapmirror/policies", **asked)
    rest.session.close()

    assert (found["uuid"], found["state"], found["healthy"]) == (
        made.uuid,
        "snapmirrored",
        True,
    )
    assert (found["policy"]["name"], found["policy"]["type"]) == (policy, "async")
    assert "transfer_schedule" not in found
    source = found["source"]
    assert (source["path"], source["cluster"]["name"]) == (
        labs.source_path,
        labs.source.lab.config.cluster,
    )
    assert (kept["type"], kept["create_snapshot_on_source"]) == ("async", False)
    [rule] = kept["retention"]
    assert (rule["label"], int(rule["count"])) == ("cloneyard", 10)
