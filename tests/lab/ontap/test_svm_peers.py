"""SVM peers: asked for, accepted or rejected on the other side, used by SnapMirror."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from provisioner.lab.ontap.server import OntapConfig, OntapLab, Settings
from tests.support.ontap_mirrors import RELATIONSHIPS, dp, source, transfer
from tests.support.ontap_rest import Rest, rest_to

pytestmark = pytest.mark.integration

PEERS = "/api/svm/peers"


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OntapLab]:
    """Two clusters whose SVMs nobody has peered yet."""
    root = tmp_path_factory.mktemp("peers")
    alone = Settings(svm_peering=False)
    there = OntapConfig(
        root / "b", password="secret", cluster="far", svm="svm_far", settings=alone
    )
    config = OntapConfig(
        root / "a",
        password="secret",
        more_svms=("svm_dr",),
        settings=alone,
        peer=there,
    )
    with OntapLab(config) as lab:
        yield lab


@pytest.fixture
def here(pair: OntapLab) -> Iterator[Rest]:
    rest = rest_to(pair)
    yield rest
    rest.session.close()


@pytest.fixture
def far(pair: OntapLab) -> Iterator[Rest]:
    assert pair.peer is not None
    rest = rest_to(pair.peer)
    yield rest
    rest.session.close()


def ask(rest: Rest, svm: str, cluster: str, other: str, **fields: Any) -> str:
    """Ask for a peering as NetApp's Ansible module does; return its path."""
    body = {
        "svm.name": svm,
        "peer.cluster.name": cluster,
        "peer.svm.name": other,
        "applications": ["snapmirror"],
        **fields,
    }
    response = rest("POST", PEERS, body)
    assert response.status_code == 202, response.text
    assert rest.job(response.json()["job"]["uuid"])["state"] == "success"
    path: str = response.headers["Location"]
    return path


def only(rest: Rest) -> dict[str, Any]:
    (row,) = rest.get(PEERS, fields="*")["records"]
    found: dict[str, Any] = row
    return found


def to(rest: Rest, path: str, state: str) -> None:
    assert rest.done("PATCH", path, {"state": state})["state"] == "success"


def test_the_other_cluster_accepts(here: Rest, far: Rest) -> None:
    path = ask(here, "svm_dev", "far", "svm_far")
    assert only(here)["state"] == "initiated"
    there = only(far)
    assert (there["state"], there["name"]) == ("pending", "svm_dev")
    assert there["peer"]["cluster"]["name"] == "lab"
    assert here.code(here("PATCH", path, {"state": "peered"})) == "26345576"
    to(far, f"{PEERS}/{there['uuid']}", "peered")
    row = here.get(path)
    assert (row["state"], row["applications"]) == ("peered", ["snapmirror"])
    assert row["peer"]["svm"]["name"] == "svm_far"
    assert only(far)["state"] == "peered"


def test_the_other_cluster_rejects(here: Rest, far: Rest) -> None:
    path = ask(here, "svm_dev", "far", "svm_far")
    to(far, f"{PEERS}/{only(far)['uuid']}", "rejected")
    assert here.get(path)["state"] == "rejected"
    body = {
        "svm.name": "svm_dev",
        "peer.cluster.name": "far",
        "peer.svm.name": "svm_far",
        "applications": ["snapmirror"],
    }
    assert here.code(here("POST", PEERS, body)) == "1"
    here.done("DELETE", path)
    assert here.get(PEERS)["num_records"] == far.get(PEERS)["num_records"] == 0
    again = ask(here, "svm_dev", "far", "svm_far")
    assert again != path
    assert only(far)["state"] == "pending"


def test_within_a_cluster_nobody_has_to_accept(here: Rest) -> None:
    path = ask(here, "svm_dev", "lab", "svm_dr")
    rows = here.get(PEERS, fields="state,svm.name", order_by="svm.name")["records"]
    assert [(row["svm"]["name"], row["state"]) for row in rows] == [
        ("svm_dev", "peered"),
        ("svm_dr", "peered"),
    ]
    here.done("DELETE", path, {"force": "true"})
    assert here.get(PEERS)["num_records"] == 0


def test_snapmirror_needs_an_accepted_peering(here: Rest, far: Rest) -> None:
    source(here)
    dp(far, "svm_far")
    body = {"source.path": "svm_dev:t", "destination.path": "svm_far:t_dst"}
    ask(far, "svm_far", "lab", "svm_dev")
    assert far.code(far("POST", RELATIONSHIPS, body)) == "13303939"
    to(here, f"{PEERS}/{only(here)['uuid']}", "peered")
    assert far.done("POST", RELATIONSHIPS, body)["state"] == "success"
    (row,) = far.get(RELATIONSHIPS)["records"]
    path = f"{PEERS}/{only(far)['uuid']}"
    assert far.code(far("DELETE", path)) == "8"
    to(far, path, "suspended")
    assert only(here)["state"] == "suspended"
    assert transfer(far, row["uuid"])["transfer"]["state"] == "failed"
    to(here, f"{PEERS}/{only(here)['uuid']}", "peered")
    assert transfer(far, row["uuid"])["transfer"]["state"] == "success"
    far.done("DELETE", f"{RELATIONSHIPS}/{row['uuid']}")
    assert far.done("DELETE", path)["state"] == "success"


def test_a_peer_may_have_a_local_name(here: Rest, far: Rest) -> None:
    path = ask(here, "svm_dev", "far", "svm_far", name="remote")
    assert here.get(path)["name"] == "remote"
    assert here.code(here("PATCH", path, {"name": "svm_dr"})) == "1"
    to(far, f"{PEERS}/{only(far)['uuid']}", "peered")
    far.volume("src", svm={"name": "svm_far"})
    dp(here, "svm_dev", "copy")
    body = {"source.path": "remote:src", "destination.path": "svm_dev:copy"}
    assert here.done("POST", RELATIONSHIPS, body)["state"] == "success"
    here.done("PATCH", path, {"name": "elsewhere", "applications": ["flexcache"]})
    assert here.get(path)["applications"] == ["flexcache"]
    assert only(far)["applications"] == ["flexcache"]
    assert here.get(PEERS, name="elsewhere")["num_records"] == 1


def test_peers_by_setting_can_be_deleted_for_good(here: Rest, far: Rest) -> None:
    for rest in (here, far):
        rest.set(svm_peering=True)
    query = {"svm.name": "svm_dev", "peer.svm.name": "svm_far"}
    (row,) = here.get(PEERS, **query)["records"]
    here.done("DELETE", f"{PEERS}/{row['uuid']}")
    assert here.get(PEERS, **query)["num_records"] == 0
    other = {"svm.name": "svm_far", "peer.svm.name": "svm_dev"}
    assert far.get(PEERS, **other)["num_records"] == 0
    assert here.get(PEERS, **{"svm.name": "svm_dr"})["num_records"] == 2


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"svm.name": None}, "26345580"),
        ({"svm.name": "nope"}, "2621462"),
        ({"applications": None}, "262194"),
        ({"applications": ["telephony"]}, "262197"),
        ({"peer.svm.name": None}, "262194"),
        ({"peer.svm.name": "nope"}, "2621462"),
        ({"peer.cluster.name": "nope"}, "26345581"),
        ({"peer.cluster.uuid": "nope"}, "26345575"),
        ({"peer.cluster.name": "lab", "peer.svm.name": "svm_dev"}, "26345579"),
        ({"name": "svm_dr"}, "1"),
        ({"state": "peered"}, "262196"),
    ],
)
def test_a_bad_request_is_refused(
    here: Rest, change: dict[str, Any], code: str
) -> None:
    body = {
        "svm.name": "svm_dev",
        "peer.cluster.name": "far",
        "peer.svm.name": "svm_far",
        "applications": ["snapmirror"],
        **change,
    }
    assert here.code(here("POST", PEERS, body)) == code
    assert here.get(PEERS)["num_records"] == 0


def test_a_change_of_nothing_is_refused(here: Rest) -> None:
    path = ask(here, "svm_dev", "lab", "svm_dr")
    assert here.code(here("PATCH", path, {})) == "26345577"
    assert here.code(here("PATCH", path, {"state": "initiated"})) == "262197"
    assert here.code(here("PATCH", f"{PEERS}/nope", {"name": "x"})) == "4"
