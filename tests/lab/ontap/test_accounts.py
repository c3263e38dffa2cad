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
def test_hardware_and_licences_are_not_theirs(two_svms: Rest, user: str) -> None:
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
