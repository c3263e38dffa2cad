"""Consistency groups: one snapshot of several volumes, all or nothing."""

from __future__ import annotations

from typing import Any

from tests.support.ontap_rest import Rest

GROUPS = "/api/application/consistency-groups"


def group(rest: Rest, name: str, *volumes: str) -> str:
    added = [
        {"name": volume, "provisioning_options": {"action": "add"}}
        for volume in volumes
    ]
    body = {"name": name, "svm": {"name": "svm_dev"}, "volumes": added}
    assert rest.done("POST", GROUPS, body)["state"] == "success"
    [found] = rest.get(GROUPS, name=name)["records"]
    return str(found["uuid"])


def snapshots_of(rest: Rest, volume: str) -> list[str]:
    found = rest.get(f"/api/storage/volumes/{volume}/snapshots")["records"]
    return [each["name"] for each in found]


def take(rest: Rest, uuid: str, **fields: Any) -> dict[str, Any]:
    return rest.done("POST", f"{GROUPS}/{uuid}/snapshots", fields)


def test_one_snapshot_is_taken_of_all_volumes(rest: Rest) -> None:
    volumes = [rest.volume("db"), rest.volume("journal")]
    uuid = group(rest, "p4", "db", "journal")

    assert take(rest, uuid, name="moment", comment="ours")["state"] == "success"

    [taken] = rest.get(f"{GROUPS}/{uuid}/snapshots", fields="*")["records"]
    names = [each["volume"]["name"] for each in taken["snapshot_volumes"]]
    assert (taken["name"], names) == ("moment", ["db", "journal"])
    assert (taken["consistency_type"], taken["is_partial"]) == ("crash", False)
    assert [snapshots_of(rest, each) for each in volumes] == [["moment"], ["moment"]]
    rest.done("DELETE", f"{GROUPS}/{uuid}/snapshots/{taken['uuid']}")
    assert [snapshots_of(rest, each) for each in volumes] == [[], []]
    rest.done("DELETE", f"{GROUPS}/{uuid}")


def test_a_volume_is_in_one_group_at_most(rest: Rest) -> None:
    rest.volume("db")
    uuid = group(rest, "p4", "db")
    added = [{"name": "db", "provisioning_options": {"action": "add"}}]
    body = {"name": "other", "svm": {"name": "svm_dev"}, "volumes": added}

    answer = rest("POST", GROUPS, body)

    assert answer.json()["error"]["code"] == "53411865"
    rest.done("DELETE", f"{GROUPS}/{uuid}")


def test_where_one_volume_refuses_none_keeps_a_snapshot(rest: Rest) -> None:
    volumes = [rest.volume("db"), rest.volume("journal")]
    uuid = group(rest, "p4", "db", "journal")
    taken = {"name": "moment"}
    rest.done("POST", f"/api/storage/volumes/{volumes[1]}/snapshots", taken)

    answer = rest("POST", f"{GROUPS}/{uuid}/snapshots", taken)

    assert answer.json()["error"]["code"] == "525059"
    assert snapshots_of(rest, volumes[0]) == []
    rest.done("DELETE", f"{GROUPS}/{uuid}")
