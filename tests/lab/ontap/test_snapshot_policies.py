"""Snapshot policies: made, changed, used by volumes, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.ontap_rest import Rest, rest_to

POLICIES = "/api/storage/snapshot-policies"
VOLUMES = "/api/storage/volumes"
DAILY: dict[str, Any] = {"schedule": {"name": "daily"}, "count": "7"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OntapLab]:
    root = tmp_path_factory.mktemp("policies")
    config = OntapConfig(root, password="secret", more_svms=("svm_qa",))
    with OntapLab(config) as running:
        yield running


@pytest.fixture
def rest(lab: OntapLab) -> Iterator[Rest]:
    client = rest_to(lab)
    yield client
    for row in client.get(VOLUMES, is_svm_root="false")["records"]:
        client.done("DELETE", f"{VOLUMES}/{row['uuid']}", force="true")
    for row in client.get(POLICIES, name="!default*")["records"]:
        if row["name"] != "none":
            assert client("DELETE", f"{POLICIES}/{row['uuid']}").ok
    client.session.close()


def make(rest: Rest, name: str, *copies: dict[str, Any], **fields: Any) -> str:
    body = {"name": name, "copies": list(copies or (DAILY,)), **fields}
    response = rest("POST", POLICIES, body)
    assert response.status_code == 201, response.text
    location: str = response.headers["Location"]
    return location


def schedule_uuid(rest: Rest, name: str) -> str:
    uuid: str = rest.get("/api/cluster/schedules", name=name)["records"][0]["uuid"]
    return uuid


def test_the_built_in_ones_are_of_the_cluster(rest: Rest) -> None:
    rows = rest.get(POLICIES, fields="*", order_by="name")["records"]
    assert [row["name"] for row in rows] == ["default", "default-1weekly", "none"]
    assert {row["scope"] for row in rows} == {"cluster"}
    assert not any("svm" in row for row in rows)
    kept = {c["schedule"]["name"]: c["count"] for c in rows[0]["copies"]}
    assert kept == {"hourly": 6, "daily": 2, "weekly": 2}
    assert rest.code(rest("DELETE", rows[0]["_links"]["self"]["href"])) == "1638431"


def test_a_policy_lives(rest: Rest) -> None:
    label = {"snapmirror_label": "fc", "retention_period": "PT20M"}
    path = make(
        rest,
        "nightly",
        {**DAILY, **label},
        {"schedule.name": "weekly", "count": 2, "prefix": "w"},
        **{"svm": {"name": "svm_dev"}, "comment": "kept"},
    )
    row = rest.get(path)
    assert (row["scope"], row["svm"]["name"]) == ("svm", "svm_dev")
    assert (row["enabled"], row["comment"]) == (True, "kept")
    daily, weekly = row["copies"]
    assert daily["schedule"] == {
        "name": "daily",
        "uuid": schedule_uuid(rest, "daily"),
    }
    assert (daily["count"], daily["prefix"]) == (7, "daily")
    assert {name: daily[name] for name in label} == label
    assert (weekly["prefix"], weekly["snapmirror_label"]) == ("w", "-")
    assert weekly["retention_period"] == "PT0S"
    changed = rest("PATCH", path, {"enabled": "false", "comment": ""})
    assert changed.status_code == 200
    row = rest.get(path, fields="enabled,comment")
    assert (row["enabled"], row["comment"]) == (False, "")
    assert rest("DELETE", path, {}).status_code == 200
    assert rest("GET", path).status_code == 404


def test_schedules_come_and_go(rest: Rest) -> None:
    path = make(rest, "p") + "/schedules"
    response = rest(
        "POST",
        path,
        {"schedule": {"name": "hourly"}, "count": 3},
        return_records="true",
    )
    assert response.status_code == 201
    assert response.json()["records"][0]["schedule"]["name"] == "hourly"
    hourly = response.headers["Location"]
    body = {"count": "24", "snapmirror_label": "h", "retention_period": "infinite"}
    assert rest("PATCH", hourly, body).status_code == 200
    assert rest.code(rest("PATCH", hourly, {"prefix": "daily"})) == "1638508"
    assert rest("PATCH", hourly, {"prefix": "hourly"}).ok  # as it is
    row = rest.get(hourly)
    assert (row["count"], row["prefix"], row["snapmirror_label"]) == (24, "hourly", "h")
    assert row["snapshot_policy"]["name"] == "p"
    assert rest.get(path)["num_records"] == 2
    assert rest("DELETE", hourly).status_code == 200
    assert rest.code(rest("DELETE", hourly)) == "1638412"
    daily = f"{path}/{schedule_uuid(rest, 'daily')}"
    assert rest.code(rest("DELETE", daily)) == "1638411"


def test_a_volume_uses_a_policy_of_its_svm_or_of_the_cluster(rest: Rest) -> None:
    own = make(rest, "own", svm={"name": "svm_dev"})
    other = make(rest, "other", svm={"name": "svm_qa"})
    make(rest, "shared")
    uuid = rest.volume("v", snapshot_policy={"uuid": rest.get(own)["uuid"]})
    path = f"{VOLUMES}/{uuid}"
    shown = rest.get(path, fields="snapshot_policy")["snapshot_policy"]
    assert shown == {"name": "own", "uuid": rest.get(own)["uuid"]}
    assert rest.code(rest("DELETE", own)) == "1638415"
    refused = rest("PATCH", path, {"snapshot_policy.name": "other"})
    assert rest.code(refused) == "917551"
    refused = rest("PATCH", path, {"snapshot_policy.uuid": rest.get(other)["uuid"]})
    assert rest.code(refused) == "917551"
    assert rest.done("PATCH", path, {"snapshot_policy.name": "shared"})["code"] == 0
    assert rest.get(path)["snapshot_policy"]["name"] == "shared"
    assert rest("DELETE", own).ok


def test_two_svms_may_use_one_name(rest: Rest) -> None:
    for svm in ("svm_dev", "svm_qa"):
        make(rest, "same", svm={"name": svm})
    body = {"name": "same", "copies": [DAILY]}
    assert rest.code(rest("POST", POLICIES, body)) == "1638527"
    rows = rest.get(POLICIES, name="same", **{"svm.name": "svm_qa"})
    assert rows["num_records"] == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"copies": [DAILY]}, "262194"),
        ({"name": "a b", "copies": [DAILY]}, "1638417"),
        ({"name": "p"}, "1638411"),
        ({"name": "p", "copies": [{"count": 1}]}, "1638408"),
        ({"name": "p", "copies": [{"schedule": {"name": "daily"}}]}, "1638407"),
        ({"name": "p", "copies": [DAILY, DAILY]}, "1638410"),
        (
            {"name": "p", "copies": [{"schedule": {"name": "never"}, "count": 1}]},
            "1638413",
        ),
        ({"name": "p", "copies": [{**DAILY, "count": 1024}]}, "1638451"),
        (
            {
                "name": "p",
                "copies": [
                    DAILY,
                    {
                        "schedule": {"name": "weekly"},
                        "count": 1,
                        "prefix": "daily",
                    },
                ],
            },
            "1638508",
        ),
        ({"name": "p", "copies": [{**DAILY, "retention_period": "20M"}]}, "918253"),
        ({"name": "default", "copies": [DAILY]}, "1638527"),
        ({"name": "p", "svm": {"name": "none"}, "copies": [DAILY]}, "2621462"),
        ({"name": "p", "copies": [{**DAILY, "color": 1}]}, "262197"),
        ({"name": "p", "copies": [{**DAILY, "count": 0}]}, "262197"),
        ({"name": "p", "copies": ["daily"]}, "262197"),
    ],
)
def test_a_bad_policy_is_refused(rest: Rest, body: dict[str, Any], code: str) -> None:
    assert rest.code(rest("POST", POLICIES, body)) == code


@pytest.mark.parametrize("body", [{"name": "q"}, {"copies": [DAILY]}])
def test_name_and_copies_do_not_change(rest: Rest, body: dict[str, Any]) -> None:
    assert rest.code(rest("PATCH", make(rest, "p"), body)) == "262196"


def test_policies_are_there_at_the_next_start(tmp_path: Path) -> None:
    config = OntapConfig(tmp_path / "lab", password="secret")
    with OntapLab(config) as lab:
        rest = rest_to(lab)
        before = rest.get(make(rest, "mine"))
        rest.session.close()
    with OntapLab(config) as lab:
        rest = rest_to(lab)
        assert rest.get(f"{POLICIES}/{before['uuid']}") == before
        assert rest.get(POLICIES)["num_records"] == 4
        rest.session.close()
