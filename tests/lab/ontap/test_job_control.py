"""Jobs that have done nothing yet can be cancelled, paused and resumed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.ontap_rest import SECONDS, Rest, rest_to

JOBS = "/api/cluster/jobs"
VOLUMES = "/api/storage/volumes"
HANG = {"method": "POST", "path": VOLUMES, "job_hang_seconds": 60}


@pytest.fixture
def one_at_a_time(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    root = tmp_path_factory.mktemp("jobs")
    with OntapLab(OntapConfig(root, password="secret", job_threads=1)) as lab:
        rest = rest_to(lab)
        yield rest
        rest.session.close()


def hanging(rest: Rest, name: str = "v") -> str:
    assert rest("PUT", "/lab/faults", {"rules": [{**HANG, "times": 1}]}).ok
    uuid = begin(rest, name)
    reach(rest, uuid, "running")
    return uuid


def begin(rest: Rest, name: str) -> str:
    body = {
        "name": name,
        "svm.name": "svm_dev",
        "aggregates": [{"name": "aggr1"}],
        "guarantee.type": "none",
    }
    uuid: str = rest("POST", VOLUMES, body).json()["job"]["uuid"]
    return uuid


def reach(rest: Rest, uuid: str, state: str) -> None:
    deadline = time.monotonic() + SECONDS
    while rest.get(f"{JOBS}/{uuid}")["state"] != state:
        assert time.monotonic() < deadline, rest.get(f"{JOBS}/{uuid}")
        time.sleep(0.02)


def act(rest: Rest, uuid: str, action: str) -> str | None:
    response = rest("PATCH", f"{JOBS}/{uuid}", {}, action=action)
    return None if response.status_code == 200 else rest.code(response)


def test_a_hanging_job_is_cancelled_and_leaves_nothing(one_at_a_time: Rest) -> None:
    rest = one_at_a_time
    uuid = hanging(rest)
    assert act(rest, uuid, "cancel") is None
    assert rest.get(f"{JOBS}/{uuid}")["state"] == "cancelled"
    assert act(rest, uuid, "cancel") == "458762"
    rest.volume("v")  # the name is free


def test_a_paused_job_waits_for_its_resumption(one_at_a_time: Rest) -> None:
    rest = one_at_a_time
    first = hanging(rest)
    waiting = begin(rest, "w")
    for uuid in (first, waiting):
        assert act(rest, uuid, "resume") == "458783"
        assert act(rest, uuid, "pause") is None
        assert rest.get(f"{JOBS}/{uuid}")["state"] == "paused"
    assert act(rest, first, "cancel") is None
    time.sleep(0.2)
    assert rest.get(VOLUMES, name="w")["num_records"] == 0
    assert act(rest, waiting, "resume") is None
    assert rest.job(waiting)["state"] == "success"
    assert rest.get(VOLUMES, name="w")["num_records"] == 1


def test_unknown_actions_and_ended_jobs(one_at_a_time: Rest) -> None:
    rest = one_at_a_time
    rest.volume("v")
    uuid = rest.get(JOBS)["records"][0]["uuid"]
    assert act(rest, uuid, "explode") == "262197"
    for action in ("cancel", "pause", "resume"):
        assert act(rest, uuid, action) == "458762"
