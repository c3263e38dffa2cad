"""Everything but volumes: snapshots, export policies, jobs, the fixed resources."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.support.ontap_rest import Rest

VOLUMES = "/api/storage/volumes"
POLICIES = "/api/protocols/nfs/export-policies"


# --- transport


def test_without_credentials_there_is_nothing(rest: Rest) -> None:
    right, rest.session.auth = rest.session.auth, ("admin", "wrong")
    response = rest("GET", "/api/cluster")
    rest.session.auth = right
    assert (response.status_code, rest.code(response)) == (401, "6691623")
    assert response.headers["WWW-Authenticate"].startswith("Basic")


def test_a_role_that_may_only_read(rest: Rest) -> None:
    uuid = rest.volume("v")
    rest.session.auth = ("readonly", "secret")
    try:
        assert rest.get(f"{VOLUMES}/{uuid}")["name"] == "v"
        for method in ("PATCH", "DELETE"):
            response = rest(method, f"{VOLUMES}/{uuid}", {"comment": "x"})
            assert (response.status_code, rest.code(response)) == (403, "6")
        response = rest("POST", VOLUMES, _volume("w"))
        assert (response.status_code, rest.code(response)) == (403, "6")
        assert rest("PATCH", "/lab/settings", {"strict": False}).status_code == 403
        rest.session.auth = ("readonly", "wrong")
        assert rest("GET", VOLUMES).status_code == 401
    finally:
        rest.session.auth = ("admin", "secret")
    assert rest.get(VOLUMES)["num_records"] == 2


def test_an_unknown_path_and_a_wrong_method(rest: Rest) -> None:
    response = rest("GET", "/api/storage/luns")
    assert (response.status_code, rest.code(response)) == (404, "3")
    response = rest("DELETE", "/api/cluster")
    assert response.status_code == 405


def test_the_cluster_says_its_version(rest: Rest) -> None:
    cluster = rest.get("/api/cluster", fields="version")
    assert cluster["version"]["full"].startswith("NetApp Release 9.16.1")
    assert cluster["_links"]["self"]["href"] == "/api/cluster"


def test_plain_json_has_no_links_but_the_next_page(rest: Rest) -> None:
    rest.volume("v")
    rest.session.headers["Accept"] = "application/json"
    page = rest.get(VOLUMES, max_records=1)
    assert set(page["_links"]) == {"next"}
    assert "_links" not in page["records"][0]


@pytest.mark.parametrize(
    "path",
    [
        "/api/svm/svms",
        "/api/storage/aggregates",
        "/api/network/ip/interfaces",
        "/api/storage/snapshot-policies",
        "/api/storage/volume-efficiency-policies",
        VOLUMES,
        POLICIES,
        "/api/cluster/jobs",
        "/api/cluster/nodes",
        "/api/cluster/licensing/licenses",
        "/api/cluster/schedules",
        "/api/snapmirror/policies",
    ],
)
def test_every_record_links_to_itself(rest: Rest, path: str) -> None:
    rest.volume("v")
    listed = rest.get(path, fields="*")
    assert listed["num_records"] == len(listed["records"]) > 0
    for record in listed["records"]:
        same = rest.get(record["_links"]["self"]["href"])
        assert same["_links"] == record["_links"]
    response = rest("GET", f"{path}/00000000-0000-0000-0000-000000000000")
    assert (response.status_code, rest.code(response)) == (404, "4")


def test_the_data_lif_is_found_by_its_service(rest: Rest) -> None:
    found = rest.get(
        "/api/network/ip/interfaces",
        **{"svm.name": "svm_dev", "services": "data_nfs", "state": "up"},
        enabled="true",
        fields="ip.address,location",
    )
    assert found["records"][0]["ip"]["address"] == "127.0.0.1"


def test_the_aggregates_add_up(rest: Rest) -> None:
    found = rest.get("/api/storage/aggregates", fields="space")["records"]
    assert [aggregate["name"] for aggregate in found] == ["aggr1", "aggr2"]
    space = found[0]["space"]["block_storage"]
    assert space["used"] + space["available"] == space["size"]


# --- collections


def test_pages_follow_each_other(rest: Rest) -> None:
    for number in range(5):
        rest.volume(f"v{number}", comment="x" if number % 2 else "y")
    names: list[str] = []
    page = rest.get(VOLUMES, max_records=2, order_by="comment desc,name", name="v*")
    while True:
        names += [row["name"] for row in page["records"]]
        assert len(page["records"]) <= 2
        if "next" not in page["_links"]:
            break
        page = rest.get(page["_links"]["next"]["href"])
    assert names == ["v0", "v2", "v4", "v1", "v3"]


def test_filters_select_and_come_back(rest: Rest) -> None:
    rest.volume("small", size="1GB")
    rest.volume("large", size="2GB")
    found = rest.get(VOLUMES, size=">1GB", name="!svm_dev_root")
    assert [row["name"] for row in found["records"]] == ["large"]
    assert found["records"][0]["size"] == 2 << 30
    assert rest.get(VOLUMES, svm="svm_dev", name="small")["num_records"] == 1
    assert rest.get(VOLUMES, svm="svm_other")["num_records"] == 0
    assert rest.get(VOLUMES, **{"nas.path": "null"})["num_records"] == 2
    search = {"query": "*l*", "query_fields": "name,comment", "size": ">1GB"}
    assert rest.get(VOLUMES, **search)["records"][0]["name"] == "large"
    count = rest.get(VOLUMES, return_records="false")
    assert count["num_records"] == 3
    assert "records" not in count


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("color=red", "262179"),
        ("fields=color", "262197"),
        ("order_by=color", "262197"),
        ("order_by=name sideways", "262197"),
        ("max_records=0", "262197"),
        ("max_records=x", "262197"),
        ("return_timeout=121", "262197"),
        ("return_records=maybe", "262197"),
        ("name=a&name=b", "262188"),
        ("name=", "262194"),
        ("start.key=x", "262197"),
        ("start.key=W10", "262197"),
        ("query=a", "262194"),
        ("query_fields=name", "262194"),
        ("query=a&query_fields=color", "262197"),
    ],
)
def test_a_bad_query_is_refused(rest: Rest, query: str, code: str) -> None:
    assert rest.code(rest("GET", f"{VOLUMES}?{query}")) == code


def test_unknown_fields_are_ignored_when_not_strict(rest: Rest) -> None:
    rest.set(strict=False)
    assert rest("GET", f"{VOLUMES}?name=*&nonsense=*").ok


@pytest.mark.parametrize("path", [f"{VOLUMES}/?name=v", f"{VOLUMES}?name=v&fields=a,"])
def test_odd_spellings_are_taken(rest: Rest, path: str) -> None:
    rest.volume("v")
    assert rest.get(path.replace("a,", "name,"))["num_records"] == 1


@pytest.mark.parametrize(
    "fields",
    [
        # What the Ansible collection reads of a volume, with its trailing comma.
        "encryption.enabled,tiering.policy,tiering.object_tags,nas.export_policy.name,"
        "aggregates.name,aggregates.uuid,uuid,nas.path,style,type,comment,"
        "qos.policy.name,nas.security_style,nas.gid,nas.unix_permissions,nas.uid,"
        "snapshot_policy,space.snapshot.reserve_percent,space.size,guarantee.type,"
        "state,efficiency.compression,snaplock,files.maximum,"
        "space.logical_space.enforcement,space.logical_space.reporting,",
        # What the DataOps Toolkit lists.
        "nas.path,size,style,clone,flexcache_endpoint_type,space,constituents",
        "comment,flexcache_endpoint_type,nas.path",
        "*,space,autosize",
    ],
)
def test_what_other_clients_ask_of_a_volume_is_answered(
    rest: Rest, fields: str
) -> None:
    uuid = rest.volume("v", nas={"path": "/v"})
    volume = rest.get(f"{VOLUMES}/{uuid}", fields=fields)
    assert volume["name"] == "v"
    assert rest.get(VOLUMES, name="v", svm="svm_dev", fields=fields)["num_records"] == 1


# --- snapshots


def test_a_snapshot_lives(rest: Rest) -> None:
    volume = rest.volume("v")
    path = f"{VOLUMES}/{volume}/snapshots"
    response = rest("POST", path, {"name": "s", "comment": "c"}, return_timeout=5)
    assert response.status_code == 201
    assert response.headers["Location"] == f"{path}/?name=s"
    (row,) = rest.get(path)["records"]
    assert set(row) == {"uuid", "name", "volume", "_links"}
    snapshot = rest.get(f"{path}/{row['uuid']}")
    assert snapshot["comment"] == "c"
    assert "owners" not in snapshot
    rest.done("PATCH", f"{path}/{row['uuid']}", {"name": "s2", "comment": "d"})
    assert rest.get(f"{path}/{row['uuid']}")["name"] == "s2"
    assert rest.get(f"{VOLUMES}/*/snapshots", name="s2")["num_records"] == 1
    assert rest.done("DELETE", f"{path}/{row['uuid']}", {})["state"] == "success"
    assert rest.get(path)["num_records"] == 0


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "262194"),
        ({"name": "s"}, "525059"),
        ({"name": "a/b"}, "1638518"),
        ({"name": "snapmirror.x"}, "1638477"),
        ({"name": "x", "snapmirror_label": "y" * 32}, "262197"),
        ({"name": "x", "color": 1}, "262179"),
    ],
)
def test_a_bad_snapshot_is_refused(rest: Rest, body: Any, code: str) -> None:
    volume = rest.volume("v")
    rest.snapshot(volume, "s")
    assert rest.code(rest("POST", f"{VOLUMES}/{volume}/snapshots", body)) == code


def test_too_many_snapshots(rest: Rest) -> None:
    volume = rest.volume("v")
    rest.snapshot(volume, "s")
    rest.set(max_snapshots_per_volume=1)
    response = rest("POST", f"{VOLUMES}/{volume}/snapshots", {"name": "t"})
    assert rest.code(response) == "525062"


# --- export policies


RULE = {"clients": [{"match": "10.0.0.0/24"}], "ro_rule": ["sys"], "rw_rule": ["sys"]}


def make_policy(rest: Rest, name: str, *rules: dict[str, Any]) -> int:
    body = {"name": name, "svm": {"name": "svm_dev"}, "rules": list(rules)}
    response = rest("POST", POLICIES, body, return_records="true")
    assert response.status_code == 201, response.text
    policy_id: int = response.json()["records"][0]["id"]
    assert response.headers["Location"] == f"{POLICIES}/{policy_id}"
    return policy_id


def test_a_policy_lives(rest: Rest) -> None:
    policy = make_policy(rest, "p", RULE)
    (rule,) = rest.get(f"{POLICIES}/{policy}")["rules"]
    assert (rule["index"], rule["superuser"], rule["anonymous_user"]) == (
        1,
        ["any"],
        "65534",
    )
    second = RULE | {"clients": [{"match": "10.1.0.1"}], "index": 1}
    path = f"{POLICIES}/{policy}/rules"
    response = rest("POST", path, second, return_records="true", return_timeout=5)
    assert response.json()["records"][0]["index"] == 1
    assert rest("PATCH", f"{path}/1", {}, new_index=2).status_code == 200
    rules = rest.get(path, fields="clients")["records"]
    assert [row["clients"][0]["match"] for row in rules] == ["10.0.0.0/24", "10.1.0.1"]
    assert rest("PATCH", f"{path}/2", {"rw_rule": ["none"]}).ok
    assert rest.get(f"{path}/2")["rw_rule"] == ["none"]
    assert rest("DELETE", f"{path}/1").status_code == 200
    assert rest.get(path)["num_records"] == 1
    response = rest("GET", f"{path}/7")
    assert (response.status_code, rest.code(response)) == (404, "4")
    assert rest("PATCH", f"{POLICIES}/{policy}", {"name": "q"}).ok
    assert rest("DELETE", f"{POLICIES}/{policy}", {}).json() == {}


def test_a_policy_in_use_stays(rest: Rest) -> None:
    policy = make_policy(rest, "used")
    rest.volume("v", nas={"export_policy": {"name": "used"}})
    assert rest.code(rest("DELETE", f"{POLICIES}/{policy}")) == "1703945"
    uuid = rest.get(VOLUMES, name="v")["records"][0]["uuid"]
    rest.done("DELETE", f"{VOLUMES}/{uuid}")
    assert rest("DELETE", f"{POLICIES}/{policy}").ok
    (default,) = rest.get(POLICIES, name="default")["records"]
    assert rest.code(rest("DELETE", f"{POLICIES}/{default['id']}")) == "1703947"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"name": "a b"}, "1703952"),
        ({"name": "x" * 257}, "1704047"),
        ({"name": "default"}, "1"),
        ({}, "262194"),
        ({"name": "p", "rules": [{"clients": []}]}, "262194"),
        ({"name": "p", "rules": [RULE | {"clients": [{"match": "1.2.3"}]}]}, "1704036"),
        ({"name": "p", "rules": [RULE | {"index": 0}]}, "3277162"),
        ({"name": "p", "rules": [RULE | {"ro_rule": ["me"]}]}, "262197"),
    ],
)
def test_a_bad_policy_is_refused(rest: Rest, body: Any, code: str) -> None:
    response = rest("POST", POLICIES, {"svm.name": "svm_dev", **body})
    assert rest.code(response) == code


def test_export_rules_decide_who_may_mount(rest: Rest) -> None:
    policy = make_policy(rest, "mine", RULE)
    volume = rest.volume("v", nas={"path": "/v", "export_policy": {"name": "mine"}})
    allowed = rest.get("/lab/mounts?path=/v", client="10.0.0.7")
    assert allowed["allowed"]
    refused = rest.get("/lab/mounts?path=/v", client="10.9.0.7")
    assert not refused["allowed"]
    assert "mine" in refused["reason"]
    assert not rest.get("/lab/mounts?path=/x", client="10.0.0.7")["allowed"]
    rest.done("DELETE", f"{VOLUMES}/{volume}")
    rest("DELETE", f"{POLICIES}/{policy}")


# --- jobs


def test_an_old_job_is_gone(rest: Rest) -> None:
    job = rest("POST", VOLUMES, {**_volume("v")}).json()["job"]["uuid"]
    assert rest.job(job)["message"] == "success"
    rest.set(job_retention_seconds=0.0)
    time.sleep(0.01)
    response = rest("GET", f"/api/cluster/jobs/{job}")
    assert (response.status_code, rest.code(response)) == (404, "4")


def test_jobs_are_found_by_description(rest: Rest) -> None:
    rest.volume("dev_alice")
    found = rest.get(
        "/api/cluster/jobs", description="*name=dev_alice*", state="success", fields="*"
    )
    assert found["records"][-1]["svm"]["name"] == "svm_dev"


def test_jobs_are_found_by_state(rest: Rest) -> None:
    rest.volume("v")
    rest("PUT", "/lab/faults", {"rules": [{"job_code": "917536", "job_message": "no"}]})
    failed = rest("POST", "/api/storage/volumes", _volume("w")).json()["job"]["uuid"]
    rest.job(failed)
    found = rest.get("/api/cluster/jobs", state="failure", fields="code")["records"]
    assert failed in [row["uuid"] for row in found]
    assert {row["state"] for row in found} == {"failure"}
    query = {"state": "queued|running", "return_records": "false"}
    assert rest.get("/api/cluster/jobs", **query)["num_records"] == 0


def test_who_holds_a_snapshot_is_said(rest: Rest) -> None:
    template = rest.volume("t")
    for name in ("free", "held"):
        rest.snapshot(template, name)
    rest.clone("c", "t", clone={"parent_snapshot": {"name": "held"}})
    path = f"/api/storage/volumes/{template}/snapshots"
    rows = rest.get(path, fields="owners", order_by="name")["records"]
    assert [(row["name"], row.get("owners")) for row in rows] == [
        ("free", None),
        ("held", ["volume_clone"]),
    ]
    assert [row["name"] for row in rest.get(path, owners="!null")["records"]] == [
        "held"
    ]


def test_a_finished_job_cannot_be_cancelled(rest: Rest) -> None:
    job = rest.done("POST", VOLUMES, _volume("v"))["uuid"]
    response = rest("PATCH", f"/api/cluster/jobs/{job}", action="cancel")
    assert rest.code(response) == "458762"


def _volume(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "svm.name": "svm_dev",
        "aggregates": [{"name": "aggr1"}],
        "guarantee.type": "none",
    }
