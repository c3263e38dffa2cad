"""Accounts with fewer rights than the cluster's administrator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.ontap_rest import Rest, rest_to

VOLUMES = "/api/storage/volumes"
OF_AN_SVM = ["vsadmin", "leastadmin"]


@pytest.fixture(scope="module")
def two_svms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    root: Path = tmp_path_factory.mktemp("accounts")
    config = OntapConfig(root, password="secret", more_svms=("svm_other",))
    with OntapLab(config) as lab:
        rest = rest_to(lab)
        yield rest
        rest.session.close()


@contextmanager
def as_user(rest: Rest, user: str) -> Iterator[None]:
    before, rest.session.auth = rest.session.auth, (user, "secret")
    try:
        yield
    finally:
        rest.session.auth = before


@pytest.mark.parametrize("user", OF_AN_SVM)
def test_an_account_of_an_svm_sees_that_svm_alone(two_svms: Rest, user: str) -> None:
    rest = two_svms
    strange = rest.volume(f"strange_{user}", svm={"name": "svm_other"})
    with as_user(rest, user):
        svms = rest.get("/api/svm/svms", fields="aggregates")["records"]
        assert [svm["name"] for svm in svms] == ["svm_dev"]
        assert svms[0]["aggregates"][0]["available_size"] > 0
        names = [row["name"] for row in rest.get(VOLUMES)["records"]]
        assert f"strange_{user}" not in names
        for method in ("GET", "PATCH", "DELETE"):
            response = rest(method, f"{VOLUMES}/{strange}", {"comment": "x"})
            assert (response.status_code, rest.code(response)) == (404, "4")
        response = rest("POST", VOLUMES, _body("mine", svm="svm_other"))
        assert rest.code(response) == "2621462"
    assert rest.get(f"{VOLUMES}/{strange}")["name"] == f"strange_{user}"


@pytest.mark.parametrize("user", [*OF_AN_SVM, "fsxadmin"])
def test_hardware_and_licenses_are_not_theirs(two_svms: Rest, user: str) -> None:
    with as_user(two_svms, user):
        for path in (
            "/api/cluster/nodes",
            "/api/cluster/licensing/licenses",
            "/api/storage/aggregates",
            "/api/private/cli/volume",
            "/lab/settings",
        ):
            response = two_svms("GET", path)
            assert (response.status_code, two_svms.code(response)) == (403, "6"), path


@pytest.mark.parametrize(
    ("user", "status"), [("vsadmin", 200), ("fsxadmin", 200), ("leastadmin", 403)]
)
def test_who_reads_the_version(two_svms: Rest, user: str, status: int) -> None:
    with as_user(two_svms, user):
        assert two_svms("GET", "/api/cluster").status_code == status


@pytest.mark.parametrize("user", [*OF_AN_SVM, "fsxadmin"])
def test_they_make_clones_and_remove_them(two_svms: Rest, user: str) -> None:
    with as_user(two_svms, user):
        parent = two_svms.volume(f"t_{user}")
        two_svms.snapshot(parent, "s")
        clone = two_svms.clone(f"c_{user}", f"t_{user}")
        for uuid in (clone, parent):
            job = two_svms.done("DELETE", f"{VOLUMES}/{uuid}", force="true")
            assert job["state"] == "success"


def _body(name: str, *, svm: str) -> dict[str, object]:
    return {"name": name, "svm": {"name": svm}, "aggregates": [{"name": "aggr1"}]}


def test_an_account_of_an_svm_sees_its_peers_policies_and_destinations_alone(
    two_svms: Rest,
) -> None:
    rest = two_svms
    rest.volume("src_of_other", svm={"name": "svm_other"})
    rest.volume("src_of_dev")
    for svm, to in (("dev", "other"), ("other", "dev")):
        rest(
            "POST",
            "/api/snapmirror/policies",
            {"name": f"p_{svm}", "svm": {"name": f"svm_{svm}"}},
        )
        rest.done(
            "POST",
            "/api/snapmirror/relationships",
            {
                "source": {"path": f"svm_{svm}:src_of_{svm}"},
                "destination": {"path": f"svm_{to}:dst_in_{to}"},
                "create_destination": {"enabled": True},
            },
        )
    with as_user(rest, "vsadmin"):
        peers = rest.get("/api/svm/peers", fields="svm,peer")["records"]
        assert [(p["svm"]["name"], p["peer"]["svm"]["name"]) for p in peers] == [
            ("svm_dev", "svm_other")
        ]
        policies = rest.get("/api/snapmirror/policies", fields="svm")["records"]
        assert {p["svm"]["name"] for p in policies if "svm" in p} == {"svm_dev"}
        assert "Asynchronous" in {policy["name"] for policy in policies}
        relationships = "/api/snapmirror/relationships"
        [ends_here] = rest.get(relationships)["records"]
        assert ends_here["source"] == {
            "path": "svm_other:src_of_other",
            "svm": ends_here["source"]["svm"],
        }
        assert ends_here["destination"]["path"] == "svm_dev:dst_in_dev"
        [begins] = rest.get(relationships, list_destinations_only="true")["records"]
        assert begins["source"]["path"] == "svm_dev:src_of_dev"
    everything = rest.get("/api/svm/peers")
    assert everything["num_records"] == 2
    strange = next(
        policy["uuid"]
        for policy in rest.get("/api/snapmirror/policies")["records"]
        if policy["name"] == "p_other"
    )
    whose_peer = everything["records"][1]["uuid"]
    with as_user(rest, "vsadmin"):
        for path in (
            f"/api/snapmirror/policies/{strange}",
            f"/api/svm/peers/{whose_peer}",
        ):
            for method in ("GET", "PATCH", "DELETE"):
                response = rest(method, path, None if method == "GET" else {})
                assert (response.status_code, rest.code(response)) == (404, "4"), path


def test_what_is_the_clusters_is_not_changed_for_an_svm(two_svms: Rest) -> None:
    rest = two_svms
    rest("POST", "/api/snapmirror/policies", {"name": "wide"})
    wide = rest.get("/api/snapmirror/policies", name="wide")["records"][0]["uuid"]
    with as_user(rest, "vsadmin"):
        for method in ("PATCH", "DELETE"):
            response = rest(method, f"/api/snapmirror/policies/{wide}", {})
            assert (response.status_code, rest.code(response)) == (403, "6")
        # What it makes without a word on the SVM is its own, and so is the job.
        made = rest.done("POST", "/api/snapmirror/policies", {"name": "own"})
        assert made["state"] == "success"
        [own] = rest.get("/api/snapmirror/policies", name="own", fields="svm")[
            "records"
        ]
        assert own["svm"]["name"] == "svm_dev"
        for to, code in (("svm_other:stolen", "2621462"), ("svm_dev:dp", "2")):
            body = {"source": {"path": "svm_other:x"}, "destination": {"path": to}}
            response = rest("POST", "/api/snapmirror/relationships", body)
            assert rest.code(response) == code, to


def test_jobs_are_watched_and_not_controlled_by_an_svm(two_svms: Rest) -> None:
    rest = two_svms
    job = rest("POST", VOLUMES, _body("of_other", svm="svm_other")).json()["job"]
    mine = rest("POST", VOLUMES, _body("of_dev", svm="svm_dev")).json()["job"]
    with as_user(rest, "vsadmin"):
        assert rest("GET", f"/api/cluster/jobs/{job['uuid']}").status_code == 404
        assert rest("GET", f"/api/cluster/jobs/{mine['uuid']}").status_code == 200
        response = rest(
            "PATCH", f"/api/cluster/jobs/{mine['uuid']}", None, action="cancel"
        )
        assert (response.status_code, rest.code(response)) == (403, "6")
