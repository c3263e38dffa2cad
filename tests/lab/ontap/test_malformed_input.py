"""Malformed input of every kind gets a documented error, never a 500 or a hang."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provisioner.lab.ontap.app import ROUTES
from provisioner.lab.ontap.errors import ERRORS
from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.ontap_rest import Rest, rest_to

pytestmark = pytest.mark.integration

EASY = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    [
        "name",
        "svm",
        "svm.name",
        "clone",
        "clone.is_flexclone",
        "clone.parent_volume.name",
        "nas",
        "nas.path",
        "nas.uid",
        "nas.unix_permissions",
        "size",
        "aggregates",
        "space.snapshot.reserve_percent",
        "rules",
        "guarantee.type",
        "comment",
        "state",
        "snapshot_policy.name",
        "clients",
        "index",
        "ro_rule",
        "rw_rule",
        "restore_to.snapshot.name",
        "efficiency.dedupe",
        "policy",
        "source",
        "destination",
        "source.path",
        "destination.path",
        "transfer_schedule",
        "expiry_time",
    ]
)
PARAMETERS = st.sampled_from(
    [
        "fields",
        "max_records",
        "order_by",
        "return_records",
        "return_timeout",
        "name",
        "svm.name",
        "size",
        "nas.path",
        "start.key",
        "force",
        "query",
        "action",
        "new_index",
        "clone.is_flexclone",
        "uuid",
    ]
)
VALUES = st.text(max_size=12) | st.sampled_from(
    ["*", "**", "!", "|", "..", ">", "<=1", '"', "null", "!null", "\x00", "a,b", "1..2"]
)


def check(response: Any) -> None:
    assert response.status_code != 500, response.text
    if response.status_code >= 400:
        error = response.json()["error"]
        assert error["code"] in ERRORS, error
        assert error["message"]


@pytest.mark.parametrize("route", ROUTES, ids=lambda r: f"{r.method} {r.path}")
@EASY
@given(
    body=st.dictionaries(FIELDS | st.text(max_size=5), JSON, max_size=4),
    query=st.dictionaries(PARAMETERS, VALUES, max_size=3),
    part=st.sampled_from(["x", "*", "0", "-1", "9" * 40, "%00", "%ff", "a b", "é"]),
)
def test_nonsense_is_refused(
    lab: OntapLab, rest: Rest, route: Any, body: Any, query: dict[str, str], part: str
) -> None:
    if route.method == "GET":
        body = None
    # A wait that was asked for is not what is tested here.
    if query.get("return_timeout", "").isdigit():
        del query["return_timeout"]
    path = "/".join(part if p.startswith("<") else p for p in route.path.split("/"))
    data = None if body is None else json.dumps(body).encode()
    if route.path == "/lab/settings":
        body = None
        data = b'{"color": 1}'
    response = rest.session.request(
        route.method, rest.url(path), data=data, params=query, timeout=60
    )
    if route.path == "/lab/faults":
        rest("DELETE", "/lab/faults")
    check(response)


THERE = settings(EASY, max_examples=6)
ABOUT_ONE = [
    route for route in ROUTES if "<" in route.path and route.method in ("GET", "PATCH")
]
ABOUT_ONE += [route for route in ROUTES if "<" in route.path and route.method == "POST"]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rest, Any]]:
    """A lab in which every path of `ABOUT_ONE` leads to something."""
    root = tmp_path_factory.mktemp("there")
    peer = OntapConfig(root / "peer", password="secret", cluster="far", svm="svm_far")
    config = OntapConfig(root, password="secret", more_svms=("svm_dr",), peer=peer)
    with OntapLab(config) as running:
        rest = rest_to(running)
        volume = rest.volume("v")
        rest.volume("d", svm={"name": "svm_dr"}, type="dp")
        path = "/api/snapmirror/relationships"
        ends = {"source.path": "svm_dev:v", "destination.path": "svm_dr:d"}
        rest.done("POST", path, ends)
        relationship = rest.get(path)["records"][0]["uuid"]
        rest("POST", f"{path}/{relationship}/transfers", {})
        one = f"{path}/{relationship}/transfers"
        groups = "/api/application/consistency-groups"
        rest.done(
            "POST",
            groups,
            {
                "name": "g",
                "svm": {"name": "svm_dev"},
                "volumes": [
                    {"name": "v", "provisioning_options": {"action": "add"}},
                ],
            },
        )
        group = rest.get(groups)["records"][0]["uuid"]
        rest.done("POST", f"{groups}/{group}/snapshots", {"name": "s"})
        rule = {
            "svm.name": "svm_dev",
            "volume.name": "v",
            "type": "user",
            "users": [{"name": ""}],
        }
        rest.done("POST", "/api/storage/quota/rules", rule)
        policy = rest.get("/api/protocols/nfs/export-policies")["records"][0]["id"]
        first: dict[str, str] = {
            "volume_uuid": volume,
            "transfer_uuid": rest.get(one)["records"][0]["uuid"],
            "id": str(policy),
            "index": "1",
            "snapshot": rest.snapshot(volume, "s2"),
            "group_uuid": group,
        }
        yield rest, first
        rest.session.close()


def place(rest: Rest, route: Any, first: dict[str, str]) -> str:
    """Fill in the route's path with what is there."""
    path = ""
    for part in route.path.split("/")[1:]:
        name = part.strip("<>").rpartition(":")[2]
        if not part.startswith("<"):
            path += f"/{part}"
        elif name in first:
            path += f"/{first[name]}"
        elif path.endswith("/snapshots"):
            path += f"/{first['snapshot']}"
        else:
            (record, *_) = rest.get(path, max_records=1)["records"]
            path = record["_links"]["self"]["href"]
    return path


@pytest.mark.parametrize("route", ABOUT_ONE, ids=lambda r: f"{r.method} {r.path}")
@THERE
@given(
    body=st.dictionaries(FIELDS | st.text(max_size=5), JSON, max_size=4),
    query=st.dictionaries(PARAMETERS, VALUES, max_size=3),
)
def test_nonsense_about_what_is_there_is_refused(
    there: tuple[Rest, dict[str, str]], route: Any, body: Any, query: dict[str, str]
) -> None:
    rest, first = there
    query.pop("return_timeout", None)
    path = place(rest, route, first)
    data = None if route.method == "GET" else json.dumps(body).encode()
    check(
        rest.session.request(
            route.method, rest.url(path), data=data, params=query, timeout=60
        )
    )


@EASY
@given(st.binary(max_size=200))
def test_any_bytes_are_a_body_or_refused(rest: Rest, data: bytes) -> None:
    url = rest.url("/api/storage/volumes")
    check(rest.session.post(url, data=data, timeout=60))


def test_a_huge_body_is_refused(rest: Rest) -> None:
    url = rest.url("/api/storage/volumes")
    response = rest.session.post(url, data=b"x" * (2 << 20), timeout=60)
    assert response.status_code == 413


def connect(lab: OntapLab) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(lab.ca_file))
    raw = socket.create_connection(("127.0.0.1", lab.port), timeout=60)
    return context.wrap_socket(raw, server_hostname="localhost")


@pytest.mark.parametrize(
    "data",
    [
        b"GET\r\n\r\n",
        b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /api/cluster HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        b"POST /api/storage/volumes HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"\x00\x01\x02\xff\r\n\r\n",
        b"GET /api/cluster HTTP/1.1\r\nHost: x\r\nno colon here\r\n\r\n",
        b"GET /api/cluster HTTP/1.1\r\nAuthorization: Basic \xff\xff\r\n\r\n",
        b"GET /api/cluster HTTP/1.1\r\nHost: x\r\nAuthorization: Basic ====\r\n\r\n",
        b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_no_http_is_answered_or_hung_up_on(lab: OntapLab, data: bytes) -> None:
    with connect(lab) as client:
        client.sendall(data)
        answer = client.recv(4096)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4") or b" 505 " in answer
    still_serving(lab)


def test_plain_text_on_the_tls_port_is_hung_up_on(lab: OntapLab) -> None:
    with socket.create_connection(("127.0.0.1", lab.port), timeout=60) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        try:
            answer = client.recv(4096)
        except ConnectionResetError:
            answer = b""
        assert b"200 OK" not in answer
    still_serving(lab)


def test_silent_clients_hold_up_nobody(lab: OntapLab) -> None:
    silent = [
        socket.create_connection(("127.0.0.1", lab.port), timeout=60) for _ in range(40)
    ]
    still_serving(lab)
    for client in silent:
        client.close()


def still_serving(lab: OntapLab) -> None:
    client = rest_to(lab)
    assert client("GET", "/api/cluster").status_code == 200
    client.session.close()
