"""Volumes and FlexClones over HTTPS, and their files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from provisioner.lab.ontap.server import OntapLab
from tests.support.ontap_rest import Rest
from tests.support.ontap_volumes import VOLUMES, entries, fill, shape

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def body(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "svm": {"name": "svm_dev"},
        "aggregates": [{"name": "aggr1"}],
        "guarantee": {"type": "none"},
        **fields,
    }


def clone_body(name: str, parent: str, **fields: Any) -> dict[str, Any]:
    clone = {"is_flexclone": True, "parent_volume": {"name": parent}}
    return {"name": name, "svm.name": "svm_dev", "clone": clone, **fields}


def owners(directory: Path) -> set[tuple[int, int]]:
    paths = [directory, *entries(directory)]
    return {(path.lstat().st_uid, path.lstat().st_gid) for path in paths}


# --- create


def test_a_volume_appears_at_its_junction(rest: Rest, lab: OntapLab) -> None:
    uuid = rest.volume("v", nas={"path": "/v", "unix_permissions": "750"})
    assert (lab.mount_root / "v").is_dir()
    assert (lab.mount_root / "v").stat().st_mode & 0o7777 == 0o750
    volume = rest.get(f"{VOLUMES}/{uuid}", fields="nas,state,size,guarantee,space")
    assert volume["nas"]["path"] == "/v"
    assert volume["nas"]["unix_permissions"] == 750
    assert volume["nas"]["junction_parent"]["name"] == "svm_dev_root"
    assert (volume["state"], volume["size"]) == ("online", 20 << 20)
    assert volume["space"]["snapshot"]["reserve_percent"] == 5


def test_the_defaults_are_those_of_ontap(rest: Rest) -> None:
    thin = body("v")
    del thin["guarantee"]
    assert rest.done("POST", VOLUMES, thin)["state"] == "success"
    found = rest.get(VOLUMES, name="v", fields="guarantee,snapshot_policy,nas,comment")
    (volume,) = found["records"]
    assert volume["guarantee"]["type"] == "volume"
    assert volume["snapshot_policy"]["name"] == "default"
    assert volume["nas"]["security_style"] == "unix"
    assert "path" not in volume["nas"]
    assert volume["comment"] == ""


def test_nas_is_absent_when_only_an_unset_path_was_asked(rest: Rest) -> None:
    uuid = rest.volume("v")
    assert "nas" not in rest.get(f"{VOLUMES}/{uuid}", fields="nas.path")


def test_the_answer_names_the_volume_and_links_the_job(rest: Rest) -> None:
    response = rest("POST", VOLUMES, body("v"))
    assert response.status_code == 202
    assert response.headers["Location"] == "/api/storage/volumes/?name=v"
    job = response.json()["job"]
    assert job["_links"]["self"]["href"] == f"/api/cluster/jobs/{job['uuid']}"
    rest.job(job["uuid"])


def test_with_return_timeout_the_record_comes_at_once(rest: Rest) -> None:
    response = rest("POST", VOLUMES, body("v"), return_timeout=5, return_records="True")
    assert response.status_code == 201
    (record,) = response.json()["records"]
    assert record["name"] == "v"
    assert record["_links"]["self"]["href"].endswith(record["uuid"])
    assert rest.job(response.json()["job"]["uuid"])["code"] == 0


def test_dotted_keys_and_strings_are_taken(rest: Rest) -> None:
    created = {
        "name": "av1",
        "svm.name": "svm_dev",
        "guarantee.type": "none",
        "aggregates": [{"name": "aggr1"}],
        "size": "1GB",
        "nas.unix_permissions": "755",
        "nas.path": "/av1",
        "space.snapshot.reserve_percent": "0",
        "state": "online",
        "type": "rw",
    }
    assert rest.done("POST", VOLUMES, created)["state"] == "success"
    (volume,) = rest.get(VOLUMES, name="av1", fields="size")["records"]
    assert volume["size"] == 1 << 30


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"svm": {}}, 400, "2621707"),
        ({"svm": {"name": "nobody"}}, 404, "2621462"),
        ({"aggregates": []}, 400, "918242"),
        ({"aggregates": [{"name": "x"}]}, 400, "917508"),
        ({"aggregates": [{"name": "aggr1"}, {"name": "b"}]}, 400, "787140"),
        ({"name": "a-b"}, 400, "917888"),
        ({"name": "9a"}, 400, "917887"),
        ({"name": "a" * 204}, 400, "917886"),
        ({"name": "svm_dev_root"}, 409, "917526"),
        ({"size": 1 << 20}, 400, "917534"),
        ({"size": "huge"}, 400, "262197"),
        ({"guarantee": {"type": "file"}}, 400, "262197"),
        ({"guarantee": {"type": "volume"}, "size": "250TB"}, 400, "917536"),
        ({"space": {"snapshot": {"reserve_percent": 91}}}, 400, "917835"),
        ({"snapshot_policy": {"name": "hourly"}}, 400, "917551"),
        ({"nas": {"export_policy": {"name": "x"}}}, 400, "918271"),
        ({"nas": {"path": "no/slash"}}, 400, "918252"),
        ({"nas": {"path": "/not/there"}}, 400, "918252"),
        ({"nas": {"unix_permissions": 999}}, 400, "262197"),
        ({"comment": "x" * 1024}, 400, "262197"),
        ({"color": "red"}, 400, "262179"),
        ({"uuid": "x"}, 400, "262196"),
    ],
)
def test_a_bad_volume_is_refused(
    rest: Rest, change: dict[str, Any], status: int, code: str
) -> None:
    response = rest("POST", VOLUMES, body("v") | change)
    assert (response.status_code, rest.code(response)) == (status, code)
    assert rest.get(VOLUMES)["num_records"] == 1


def test_a_taken_name_may_be_refused_in_the_job(rest: Rest) -> None:
    rest.volume("v")
    assert rest.code(rest("POST", VOLUMES, body("v"))) == "917526"
    rest.set(refusals="job")
    job = rest.done("POST", VOLUMES, body("v"))
    assert (job["state"], job["code"], job["error"]["code"]) == (
        "failure",
        917526,
        "917526",
    )


def test_a_junction_path_belongs_to_one_volume_in_any_case(rest: Rest) -> None:
    rest.volume("a", nas={"path": "/Same"})
    response = rest("POST", VOLUMES, body("b", nas={"path": "/same"}))
    assert rest.code(response) == "918252"


def test_junctions_nest_where_the_directory_exists(rest: Rest, lab: OntapLab) -> None:
    rest.volume("ws", nas={"path": "/ws"})
    assert rest.code(rest("POST", VOLUMES, body("v", nas={"path": "/ws/team/v"}))) == (
        "918252"
    )
    (lab.mount_root / "ws" / "team").mkdir()
    inner = rest.volume("v", nas={"path": "/ws/team/v"})
    (lab.mount_root / "ws" / "team" / "v" / "file").write_text("inner")
    outer = rest.get(VOLUMES, name="ws")["records"][0]["uuid"]
    job = rest.done("PATCH", f"{VOLUMES}/{outer}", {"nas": {"path": ""}})
    assert (job["state"], job["code"]) == ("failure", 917536)
    rest.done("PATCH", f"{VOLUMES}/{inner}", {"nas": {"path": ""}})
    assert list((lab.mount_root / "ws" / "team").iterdir()) == []


def test_a_junction_is_not_made_through_a_symlink(
    rest: Rest, lab: OntapLab, tmp_path: Path
) -> None:
    rest.volume("ws", nas={"path": "/ws"})
    (lab.mount_root / "ws" / "out").symlink_to(tmp_path)
    response = rest("POST", VOLUMES, body("v", nas={"path": "/ws/out/v"}))
    assert rest.code(response) == "918252"
    assert list(tmp_path.iterdir()) == []


# --- clone


def test_a_clone_has_everything_and_is_independent(rest: Rest, lab: OntapLab) -> None:
    template = rest.volume("t", nas={"path": "/t"})
    fill(lab.mount_root / "t")
    before = shape(lab.mount_root / "t")
    snapshot = rest.snapshot(template, "s1")
    (lab.mount_root / "t" / "later").write_text("not in the snapshot")
    rest.clone(
        "c",
        "t",
        clone={"parent_snapshot": {"name": "s1", "uuid": snapshot}},
        nas={"path": "/c"},
        comment="tag",
    )
    assert shape(lab.mount_root / "c") == before
    (lab.mount_root / "c" / "secret").write_text("changed")
    assert (lab.mount_root / "t" / "secret").read_text() == "x"
    (clone,) = rest.get(VOLUMES, name="c", fields="clone,comment,size")["records"]
    assert clone["clone"]["parent_volume"]["name"] == "t"
    assert clone["clone"]["parent_snapshot"] == {"name": "s1", "uuid": snapshot}
    assert (clone["comment"], clone["size"]) == ("tag", 20 << 20)


@as_root
def test_uid_and_gid_of_a_clone_own_its_whole_tree(rest: Rest, lab: OntapLab) -> None:
    rest.volume("t", nas={"path": "/t", "uid": 1001, "gid": 1001})
    fill(lab.mount_root / "t")
    before = shape(lab.mount_root / "t")
    rest.clone("c", "t", nas={"path": "/c", "uid": 2001, "gid": 2002})
    assert owners(lab.mount_root / "c") == {(2001, 2002)}
    assert shape(lab.mount_root / "c") == before
    assert (1001, 1001) in owners(lab.mount_root / "t")
    assert (2001, 2002) not in owners(lab.mount_root / "t")


@as_root
def test_re_owning_can_be_switched_off(rest: Rest, lab: OntapLab) -> None:
    rest.volume("t", nas={"path": "/t", "uid": 1001, "gid": 1001})
    fill(lab.mount_root / "t")
    rest.set(clone_reown=False)
    rest.clone("c", "t", nas={"path": "/c", "uid": 2001, "gid": 2002})
    assert owners(lab.mount_root / "c") == owners(lab.mount_root / "t")


@as_root
def test_a_patch_owns_the_root_directory_only(rest: Rest, lab: OntapLab) -> None:
    uuid = rest.volume("t", nas={"path": "/t", "uid": 1001, "gid": 1001})
    (lab.mount_root / "t" / "file").write_text("x")
    changes = {"nas": {"uid": 2001, "gid": 2002, "unix_permissions": 700}}
    assert rest.done("PATCH", f"{VOLUMES}/{uuid}", changes)["state"] == "success"
    status = (lab.mount_root / "t").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (
        2001,
        2002,
        0o700,
    )
    assert (lab.mount_root / "t" / "file").stat().st_uid == 0


def test_a_clone_without_a_snapshot_gets_one(rest: Rest) -> None:
    template = rest.volume("t")
    rest.clone("a_rather_long_name", "t")
    (base,) = rest.get(f"{VOLUMES}/{template}/snapshots", fields="owners")["records"]
    assert base["name"].startswith("clone_a_rather_long_na.")
    assert base["owners"] == ["volume_clone"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"size": "1GB"}, "918247"),
        ({"snapshot_policy": {"name": "none"}}, "918247"),
        ({"aggregates": [{"name": "aggr1"}]}, "918247"),
        ({"nas": {"unix_permissions": 755}}, "918247"),
        ({"nas": {"export_policy": {"name": "default"}}}, "918247"),
        ({"nas": {"uid": 0, "gid": 5}}, "13565983"),
        ({"nas": {"uid": 5, "gid": 0}}, "13565983"),
        ({"type": "dp"}, "918244"),
        ({"clone": {"parent_volume": {"name": "nobody"}}}, "524601"),
        ({"clone": {"parent_volume": {"name": "t", "uuid": "x"}}}, "918236"),
        (
            {"clone": {"parent_volume.name": "t", "parent_snapshot": {"name": "x"}}},
            "1638400",
        ),
        ({"clone": {"is_flexclone": True}}, "262194"),
        ({"name": "t"}, "917526"),
    ],
)
def test_a_bad_clone_is_refused(rest: Rest, change: dict[str, Any], code: str) -> None:
    rest.volume("t")
    assert rest.code(rest("POST", VOLUMES, clone_body("c", "t") | change)) == code


def test_guarantee_on_a_clone_is_a_setting(rest: Rest) -> None:
    rest.volume("t")
    request = clone_body("c", "t", guarantee={"type": "none"})
    rest.set(clone_guarantee=False)
    assert rest.code(rest("POST", VOLUMES, request)) == "918247"
    rest.set(clone_guarantee=True)
    assert rest.done("POST", VOLUMES, request)["state"] == "success"


def test_an_offline_parent_has_no_clones(rest: Rest) -> None:
    template = rest.volume("t")
    rest.done("PATCH", f"{VOLUMES}/{template}", {"state": "offline"})
    assert rest.code(rest("POST", VOLUMES, clone_body("c", "t"))) == "917775"


@pytest.mark.parametrize(
    ("limit", "text"),
    [("max_volumes_per_svm", "volumes"), ("max_clones_per_volume", "clones")],
)
def test_limits_are_settings(rest: Rest, limit: str, text: str) -> None:
    rest.volume("t")
    rest.clone("a", "t")
    rest.set(**{limit: 1})
    response = rest("POST", VOLUMES, clone_body("b", "t"))
    assert rest.code(response) == "917536"
    assert text in response.text


def test_a_full_aggregate_refuses(rest: Rest) -> None:
    rest.volume("t")
    rest.set(aggregate_is_full=True)
    assert rest.code(rest("POST", VOLUMES, body("v"))) == "917536"
    response = rest("POST", VOLUMES, clone_body("c", "t"))
    assert "not enough space" in response.text
