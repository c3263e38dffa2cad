"""The recovery queue: what is deleted keeps its space, its quota and its pin."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from provisioner.lab.ontap.server import OntapLab
from tests.support.ontap_rest import SECONDS, Rest

VOLUMES = "/api/storage/volumes"
QUEUE = "/api/private/cli/volume/recovery-queue"


@pytest.fixture
def queue(rest: Rest) -> Iterator[Rest]:
    """A lab that keeps what is deleted, emptied afterwards."""
    rest.set(recovery_queue_seconds=12 * 3600.0)
    yield rest
    for _ in range(3):  # clones go before their parents
        for row in rest.get(QUEUE)["records"]:
            rest.done("POST", f"{QUEUE}/purge", _named(row["volume"]))


def _named(volume: str) -> dict[str, str]:
    return {"vserver": "svm_dev", "volume": volume}


def _queued(rest: Rest, pattern: str = "*") -> str:
    (row,) = rest.get(QUEUE, vserver="svm_dev", volume=pattern)["records"]
    name: str = row["volume"]
    return name


def test_the_recovery_queue_keeps_a_volume_and_its_pin(queue: Rest) -> None:
    rest = queue
    template = rest.volume("t")
    clone = rest.clone("c", "t")
    rest.done("DELETE", f"{VOLUMES}/{clone}")
    assert rest("GET", f"{VOLUMES}/{clone}").status_code == 404
    assert rest.done("DELETE", f"{VOLUMES}/{template}", force="true")["code"] == 524615
    (queued,) = rest.get(QUEUE, vserver="svm_dev", volume="c*")["records"]
    svm = rest.get("/api/svm/svms", fields="number_of_volumes_in_recovery_queue")
    assert svm["records"][0]["number_of_volumes_in_recovery_queue"] == 1
    rest.clone("c", "t")  # the name is free
    response = rest("POST", f"{QUEUE}/purge", _named(queued["volume"]))
    assert response.status_code == 202
    assert rest.job(response.json()["job"]["uuid"])["state"] == "success"
    assert rest.get(QUEUE)["num_records"] == 0


def test_a_queued_volume_has_another_name_and_is_in_no_list(queue: Rest) -> None:
    uuid = queue.volume("v", nas={"path": "/v"}, comment="cloneyard")
    msid = queue.get(f"{VOLUMES}/{uuid}")["msid"]
    queue.done("DELETE", f"{VOLUMES}/{uuid}")
    assert queue.get(VOLUMES, comment="*cloneyard*")["num_records"] == 0
    (row,) = queue.get(QUEUE, fields="*")["records"]
    assert row["volume"].startswith("v_")
    assert str(msid).endswith(row["volume"].removeprefix("v_"))
    assert row["retention_hours"] == 12
    asked = datetime.fromisoformat(row["deletion_request_time"])
    assert datetime.now(UTC) - asked < timedelta(minutes=5)


def test_a_queued_volume_takes_a_place_of_the_svm(queue: Rest) -> None:
    queue.done("DELETE", f"{VOLUMES}/{queue.volume('v')}")
    queue.set(max_volumes_per_svm=2)  # the root volume is the other one
    body = {
        "name": "w",
        "svm.name": "svm_dev",
        "aggregates.name": "aggr1",
        "guarantee.type": "none",
    }
    assert queue.code(queue("POST", VOLUMES, body)) == "917536"
    queue.done("POST", f"{QUEUE}/purge", _named(_queued(queue)))
    assert queue.done("POST", VOLUMES, body)["state"] == "success"


def test_a_volume_comes_back_offline_with_its_files(queue: Rest, lab: OntapLab) -> None:
    uuid = queue.volume("v", nas={"path": "/v"})
    (lab.mount_root / "v" / "file").write_text("x")
    snapshot = queue.snapshot(uuid, "s")
    queue.done("DELETE", f"{VOLUMES}/{uuid}")
    name = _queued(queue)
    assert queue.done("POST", f"{QUEUE}/recover", _named(name))["state"] == "success"
    row = queue.get(f"{VOLUMES}/{uuid}", fields="state,nas.path")
    assert (row["name"], row["state"], "nas" in row) == (name, "offline", False)
    queue.done("PATCH", f"{VOLUMES}/{uuid}", {"state": "online"})
    queue.done("PATCH", f"{VOLUMES}/{uuid}", {"name": "v", "nas": {"path": "/back"}})
    assert (lab.mount_root / "back" / "file").read_text() == "x"
    assert queue.get(f"{VOLUMES}/{uuid}/snapshots/{snapshot}")["name"] == "s"
    assert queue.get(QUEUE)["num_records"] == 0


def test_one_volume_may_be_kept_for_another_time(queue: Rest) -> None:
    queue.done("DELETE", f"{VOLUMES}/{queue.volume('v')}")
    query = _named(_queued(queue))
    assert queue("PATCH", QUEUE, {"retention_hours": "48"}, **query).ok
    assert queue.get(QUEUE, fields="*")["records"][0]["retention_hours"] == 48
    assert queue("PATCH", QUEUE, {"retention_hours": 0}, **query).ok
    deadline = time.monotonic() + SECONDS
    while queue.get(QUEUE)["num_records"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", f"{QUEUE}/purge", {"vserver": "svm_dev", "volume": "nope"}, "4"),
        ("POST", f"{QUEUE}/purge", {"volume": "nope"}, "262194"),
        ("POST", f"{QUEUE}/recover", {"vserver": "svm_dev"}, "262194"),
        ("PATCH", QUEUE, {"retention_hours": -1}, "262197"),
        ("PATCH", QUEUE, {"retention_hours": 1}, "262194"),
    ],
)
def test_bad_requests(
    queue: Rest, method: str, path: str, body: dict[str, str], code: str
) -> None:
    assert queue.code(queue(method, path, body)) == code
