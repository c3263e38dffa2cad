"""Faults on demand."""

from __future__ import annotations

import time
from typing import Any

import pytest
import requests

from provisioner.lab.ontap.faults import Fault, Faults
from provisioner.lab.ontap.server import OntapLab
from tests.support.ontap_rest import Rest, rest_to

VOLUMES = "/api/storage/volumes"
BODY = {
    "name": "v",
    "svm.name": "svm_dev",
    "aggregates": [{"name": "aggr1"}],
    "guarantee.type": "none",
}


def order(rest: Rest, *rules: dict[str, Any], seed: int = 0) -> None:
    response = rest("PUT", "/lab/faults", {"seed": seed, "rules": list(rules)})
    assert response.ok, response.text


def test_an_error_before_the_effect(rest: Rest) -> None:
    order(rest, {"method": "POST", "path": VOLUMES, "status": 429, "times": 1})
    assert rest("POST", VOLUMES, BODY).status_code == 429
    assert rest.get(VOLUMES, name="v")["num_records"] == 0
    assert rest.done("POST", VOLUMES, BODY)["state"] == "success"


def test_an_error_after_the_effect(rest: Rest) -> None:
    rule = {"method": "POST", "status": 503, "code": "99", "when": "after", "times": 1}
    order(rest, rule)
    response = rest("POST", VOLUMES, BODY, return_timeout=5)
    assert (response.status_code, rest.code(response)) == (503, "99")
    assert rest.get(VOLUMES, name="v")["num_records"] == 1


@pytest.mark.parametrize(("when", "made"), [("before", 0), ("after", 1)])
def test_a_dropped_connection(rest: Rest, when: str, made: int) -> None:
    order(rest, {"method": "POST", "drop": True, "when": when, "times": 1})
    with pytest.raises(requests.ConnectionError):
        rest("POST", VOLUMES, BODY, return_timeout=5)
    assert rest.get(VOLUMES, name="v")["num_records"] == made


def test_latency_by_endpoint(rest: Rest) -> None:
    order(rest, {"path": "/api/cluster", "latency_seconds": 0.2})
    began = time.monotonic()
    rest.get("/api/cluster")
    assert time.monotonic() - began >= 0.2
    order(rest, {"path": "/api/cluster", "latency_seconds": 60})
    began = time.monotonic()
    rest.get("/api/svm/svms")
    assert time.monotonic() - began < 30


def test_a_job_fails_and_leaves_nothing(rest: Rest) -> None:
    order(
        rest,
        {"method": "POST", "job_code": "524819", "job_message": "No.", "times": 1},
    )
    job = rest.done("POST", VOLUMES, BODY)
    assert (job["state"], job["code"], job["message"]) == ("failure", 524819, "No.")
    assert rest.get(VOLUMES, name="v")["num_records"] == 0
    assert rest.done("POST", VOLUMES, BODY)["state"] == "success"


def test_a_job_hangs_until_it_is_let_go(rest: Rest) -> None:
    order(rest, {"method": "POST", "job_hang_seconds": 60})
    job = rest("POST", VOLUMES, BODY).json()["job"]["uuid"]
    state = rest.get(f"/api/cluster/jobs/{job}", fields="state,end_time")
    assert state["state"] in ("queued", "running")
    assert "end_time" not in state
    response = rest("POST", VOLUMES, BODY)
    assert rest.code(response) == "13107405"
    rest("DELETE", "/lab/faults")
    assert rest.job(job)["state"] == "success"


def test_the_same_seed_gives_the_same_faults() -> None:
    def pattern(seed: int) -> list[bool]:
        faults = Faults()
        faults.replace([Fault.parse({"status": 500, "rate": 0.3})], seed=seed)
        return [faults.draw(method="GET", path="/x") is not None for _ in range(200)]

    assert pattern(7) == pattern(7)
    assert pattern(7) != pattern(8)
    assert 20 < sum(pattern(7)) < 100


@pytest.mark.parametrize(
    "rule",
    [
        {"color": 1},
        {"when": "never"},
        {"rate": "often"},
        {"drop": 1},
        {"latency_seconds": -1},
        {"path": 5},
        [],
        7,
    ],
)
def test_a_bad_rule_is_refused(rest: Rest, rule: Any) -> None:
    response = rest("PUT", "/lab/faults", {"rules": [rule]})
    assert (response.status_code, rest.code(response)) == (400, "262197")


@pytest.mark.parametrize(
    "change", [{"color": 1}, {"strict": "yes"}, {"max_volumes_per_svm": "many"}]
)
def test_a_bad_setting_is_refused(rest: Rest, change: Any) -> None:
    assert rest("PATCH", "/lab/settings", change).status_code == 400


def test_an_expired_certificate(rest: Rest, lab: OntapLab) -> None:
    rules = [{"expired_certificate": True, "times": 1}]
    assert rest("PUT", "/lab/faults", {"rules": rules}).ok
    assert rest("GET", "/api/cluster").ok  # the connection is older than the fault
    stranger = rest_to(lab)
    with pytest.raises(requests.exceptions.SSLError, match="expired"):
        stranger("GET", "/api/cluster")
    assert stranger("GET", "/api/cluster").ok
    stranger.session.close()


def test_the_location_names_a_volume_or_has_its_uuid(rest: Rest) -> None:
    for setting in ("name", "uuid"):
        rest.set(location=setting)
        body = {
            "name": f"by_{setting}",
            "svm.name": "svm_dev",
            "aggregates": [{"name": "aggr1"}],
            "guarantee.type": "none",
        }
        made = rest("POST", "/api/storage/volumes", body, return_timeout=10)
        found = rest.get("/api/storage/volumes", name=f"by_{setting}")["records"][0]
        tail = f"/?name=by_{setting}" if setting == "name" else f"/{found['uuid']}"
        assert made.headers["Location"] == f"/api/storage/volumes{tail}"


def test_the_location_of_a_snapshot_names_it_or_has_its_uuid(rest: Rest) -> None:
    base = f"/api/storage/volumes/{rest.volume('v')}/snapshots"
    by_name = rest("POST", base, {"name": "a"}, return_timeout=5)
    assert by_name.headers["Location"] == f"{base}/?name=a"
    (row,) = rest.get(by_name.headers["Location"])["records"]
    rest.set(location="uuid")
    by_uuid = rest("POST", base, {"name": "b"}, return_timeout=5)
    found = rest.get(by_uuid.headers["Location"])
    assert (found["name"], row["name"]) == ("b", "a")
    assert by_uuid.headers["Location"] == f"{base}/{found['uuid']}"
