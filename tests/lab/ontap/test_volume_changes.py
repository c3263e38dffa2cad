"""Changing, splitting, restoring and deleting volumes over HTTPS, and their files."""

from __future__ import annotations

import time
from typing import Any

import pytest

from provisioner.lab.ontap.faults import Fault
from provisioner.lab.ontap.server import OntapLab
from tests.support.ontap_rest import SECONDS, Rest
from tests.support.ontap_volumes import VOLUMES


def test_properties_change(rest: Rest) -> None:
    uuid = rest.volume("v")
    for change in (
        {"name": "w"},
        {"comment": "hello"},
        {"size": "2GB"},
        {"snapshot_policy": {"name": "none"}},
        {"space": {"snapshot": {"reserve_percent": 0}}},
        {"guarantee": {"type": "none"}},
        {"qos": {"policy": {"name": "value-fixed"}}},
    ):
        job = rest.done("PATCH", f"{VOLUMES}/{uuid}", change)
        assert job["state"] == "success", job
    fields = "name,comment,size,snapshot_policy,space.snapshot,qos.policy"
    volume = rest.get(f"{VOLUMES}/{uuid}", fields=fields)
    assert (volume["name"], volume["comment"], volume["size"]) == (
        "w",
        "hello",
        2 << 30,
    )
    assert volume["snapshot_policy"]["name"] == "none"
    assert volume["space"]["snapshot"]["reserve_percent"] == 0
    assert volume["qos"]["policy"]["name"] == "value-fixed"
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"comment": ""})
    assert rest.get(f"{VOLUMES}/{uuid}", fields="comment")["comment"] == ""


def test_the_junction_moves_and_goes(rest: Rest, lab: OntapLab) -> None:
    uuid = rest.volume("v", nas={"path": "/v"})
    (lab.mount_root / "v" / "file").write_text("x")
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"nas.path": "/w"})
    assert (lab.mount_root / "w" / "file").read_text() == "x"
    assert not (lab.mount_root / "v").exists()
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"nas.path": ""})
    assert not (lab.mount_root / "w").exists()


def test_offline_hides_what_only_an_online_volume_has(
    rest: Rest, lab: OntapLab
) -> None:
    uuid = rest.volume("v", nas={"path": "/v"})
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"state": "offline"})
    assert not (lab.mount_root / "v").exists()
    volume = rest.get(f"{VOLUMES}/{uuid}", fields="*,nas.path")
    assert volume["status"] == ["Volume v is not online."]
    assert "used" not in volume["space"]
    assert "language" not in volume
    response = rest("PATCH", f"{VOLUMES}/{uuid}", {"nas": {"path": "/v"}})
    assert rest.code(response) == "9437885"
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"state": "online"})
    assert rest.get(f"{VOLUMES}/{uuid}")["state"] == "online"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"state": "asleep"}, "918652"),
        ({"name": "svm_dev_root"}, "917526"),
        ({"uuid": "x"}, "262196"),
        ({"svm": {"name": "x"}}, "262196"),
        ({"color": 1}, "262179"),
        ({"clone": {"split_initiated": True}}, "918235"),
        ({"restore_to": {"snapshot": {"name": "x"}}}, "1638600"),
        ({"restore_to.snapshot.name": "x", "comment": "y"}, "918251"),
        ({"clone.split_initiated": True, "size": "1GB"}, "918248"),
    ],
)
def test_a_bad_change_is_refused(rest: Rest, change: Any, code: str) -> None:
    uuid = rest.volume("v")
    assert rest.code(rest("PATCH", f"{VOLUMES}/{uuid}", change)) == code


def test_a_name_goes_to_one_of_two_renames(rest: Rest, lab: OntapLab) -> None:
    """Both pass the check of the request; the jobs come one after the other."""
    paths = [f"{VOLUMES}/{rest.volume(name)}" for name in ("a", "b")]
    lab.array.faults.replace(
        [Fault.parse({"method": "PATCH", "job_hang_seconds": 0.3})], seed=0
    )
    jobs = [rest("PATCH", path, {"name": "new"}).json()["job"] for path in paths]
    ended = [rest.job(job["uuid"]) for job in jobs]
    assert sorted(job["state"] for job in ended) == ["failure", "success"]
    assert {job["code"] for job in ended} == {0, 917526}
    assert rest.get(VOLUMES, name="new")["num_records"] == 1


def test_a_renamed_volume_keeps_junction_files_and_clones(
    rest: Rest, lab: OntapLab
) -> None:
    uuid = rest.volume("t", nas={"path": "/t"})
    (lab.mount_root / "t" / "file").write_text("x")
    clone = rest.clone("c", "t")
    rest.done("PATCH", f"{VOLUMES}/{uuid}", {"name": "t2"})
    row = rest.get(f"{VOLUMES}/{uuid}", fields="nas.path")
    assert (row["name"], row["nas"]["path"]) == ("t2", "/t")
    assert (lab.mount_root / "t" / "file").read_text() == "x"
    parent = rest.get(f"{VOLUMES}/{clone}", fields="clone")["clone"]["parent_volume"]
    assert parent["name"] == "t2"
    rest.volume("t")  # the old name is free


def test_a_comment_on_a_clone_is_found_and_cleared(rest: Rest) -> None:
    rest.volume("t", comment="cloneyard:template")
    clone = rest.clone("c", "t")
    assert rest.get(f"{VOLUMES}/{clone}")["comment"] == ""
    rest.done("PATCH", f"{VOLUMES}/{clone}", {"comment": "v1;cloneyard;ws=7"})
    found = rest.get(VOLUMES, comment="*cloneyard*", order_by="name")["records"]
    assert [(row["name"], row["comment"]) for row in found] == [
        ("c", "v1;cloneyard;ws=7"),
        ("t", "cloneyard:template"),
    ]
    rest.done("PATCH", f"{VOLUMES}/{clone}", {"comment": ""})
    assert rest.get(VOLUMES, comment="*cloneyard*")["num_records"] == 1


def test_validate_only_changes_nothing(rest: Rest) -> None:
    uuid = rest.volume("v")
    query = {"validate_only": "true"}
    assert rest("PATCH", f"{VOLUMES}/{uuid}", {"comment": "x"}, **query).ok
    assert rest.get(f"{VOLUMES}/{uuid}")["comment"] == ""


def test_restore_brings_the_snapshot_back(rest: Rest, lab: OntapLab) -> None:
    uuid = rest.volume("v", nas={"path": "/v"})
    file = lab.mount_root / "v" / "file"
    file.write_text("then")
    snapshot = rest.snapshot(uuid, "s")
    file.write_text("now")
    query = {"restore_to.snapshot.name": "s", "restore_to.snapshot.uuid": snapshot}
    job = rest.done("PATCH", f"{VOLUMES}/{uuid}", {}, **query)
    assert job["state"] == "success", job
    assert file.read_text() == "then"


def test_a_split_clone_stands_alone(rest: Rest, lab: OntapLab) -> None:
    template = rest.volume("t", nas={"path": "/t"})
    (lab.mount_root / "t" / "file").write_text("x")
    snapshot = rest.snapshot(template, "s")
    clone = rest.clone(
        "c", "t", clone={"parent_snapshot": {"name": "s"}}, nas={"path": "/c"}
    )
    rest.set(split_seconds=0.2)
    rest.done("PATCH", f"{VOLUMES}/{clone}", {"clone": {"split_initiated": True}})
    seen = []
    while (now := rest.get(f"{VOLUMES}/{clone}", fields="clone"))["clone"][
        "is_flexclone"
    ]:
        seen.append(now["clone"].get("split_complete_percent"))
    assert seen == sorted(seen)
    path = f"{VOLUMES}/{template}/snapshots/{snapshot}"
    assert rest.done("DELETE", path)["state"] == "success"
    assert rest.done("DELETE", f"{VOLUMES}/{template}")["state"] == "success"
    assert (lab.mount_root / "c" / "file").read_text() == "x"


def test_an_offline_volume_rests_in_its_split(rest: Rest) -> None:
    rest.volume("t")
    clone = rest.clone("c", "t")
    path = f"{VOLUMES}/{clone}"
    rest.set(split_seconds=30.0)
    rest.done("PATCH", path, {"clone": {"split_initiated": True}})
    rest.done("PATCH", path, {"state": "offline"})
    assert rest.get(path, fields="clone")["clone"]["split_initiated"] is True
    rest.set(split_seconds=0.0)
    time.sleep(0.2)
    assert rest.get(path, fields="clone")["clone"]["is_flexclone"] is True
    rest.done("PATCH", path, {"state": "online"})
    deadline = time.monotonic() + SECONDS
    while rest.get(path, fields="clone")["clone"]["is_flexclone"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


# --- delete


def test_a_mounted_volume_goes_with_one_delete(rest: Rest, lab: OntapLab) -> None:
    uuid = rest.volume("v", nas={"path": "/v"})
    (lab.mount_root / "v" / "file").write_text("x")
    assert rest.done("DELETE", f"{VOLUMES}/{uuid}", {})["state"] == "success"
    assert rest("GET", f"{VOLUMES}/{uuid}").status_code == 404
    assert not (lab.mount_root / "v").exists()
    assert not lab.array.root.joinpath("data", "volumes", uuid).exists()


def test_a_parent_of_clones_stays(rest: Rest) -> None:
    template = rest.volume("t")
    snapshot = rest.snapshot(template, "s")
    rest.clone("c", "t", clone={"parent_snapshot": {"name": "s"}})
    job = rest.done("DELETE", f"{VOLUMES}/{template}", {})
    assert (job["state"], job["code"]) == ("failure", 524615)
    job = rest.done("DELETE", f"{VOLUMES}/{template}/snapshots/{snapshot}", {})
    assert (job["state"], job["code"]) == ("failure", 1638555)
    response = rest("DELETE", f"{VOLUMES}/{template}", return_timeout=5)
    assert (response.status_code, rest.code(response)) == (409, "524615")


def test_the_root_volume_stays(rest: Rest) -> None:
    root = rest.get(VOLUMES)["records"][0]["uuid"]
    assert rest.done("DELETE", f"{VOLUMES}/{root}")["code"] == 917531


def test_volumes_are_deleted_by_query(rest: Rest) -> None:
    for name in ("x1", "x2", "y"):
        rest.volume(name)
    assert rest.code(rest("DELETE", VOLUMES)) == "262204"
    response = rest("DELETE", VOLUMES, name="x*")
    assert response.status_code == 200  # without return_timeout it waits 15 s
    for job in response.json()["jobs"]:
        assert rest.job(job["uuid"])["state"] == "success"
    names = [row["name"] for row in rest.get(VOLUMES)["records"]]
    assert names == ["svm_dev_root", "y"]


def test_volumes_change_by_query(rest: Rest) -> None:
    for name in ("x1", "x2", "y"):
        rest.volume(name)
    response = rest("PATCH", VOLUMES, {"comment": "both"}, name="x*", return_timeout=0)
    assert response.status_code in (200, 202)
    for job in response.json()["jobs"]:
        assert rest.job(job["uuid"])["state"] == "success"
    assert rest.get(VOLUMES, comment="both")["num_records"] == 2
    response = rest("DELETE", VOLUMES, name="svm_dev_root")
    assert response.status_code == 202
    (job,) = response.json()["jobs"]
    assert rest.job(job["uuid"])["code"] == 917531
