"""The web server as it is started: with gunicorn, its threads, and places to wait."""

from __future__ import annotations

import http.client
import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.db import connection
from gunicorn.config import Config
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.demo.processes import Child
from provisioner.webserver import Worker
from tests.support.factories import SnapshotFactory, UserFactory
from tests.support.ports import free_ports
from tests.support.requests import workspace_create
from tests.support.web_servers import status_of, wait_until_healthy

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 12
# A machine with much else to do; a wait is 30 s.
SECONDS_FOR_SEVENTY = 20


@dataclass(frozen=True)
class Web:
    port: int
    health_port: int
    home: Path
    log: Path
    process_id: int

    def processor_seconds(self) -> float:
        """Return what its worker processes have used of a processor."""
        task = Path(f"/proc/{self.process_id}/task/{self.process_id}")
        ticks = 0
        for child in (task / "children").read_text().split():
            stat = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks += int(stat[11]) + int(stat[12])
        return ticks / os.sysconf("SC_CLK_TCK")


def send(port: int, path: str, *, token: str) -> http.client.HTTPConnection:
    """Ask, and leave the answer to come."""
    asking = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    asking.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    return asking


@pytest.fixture(scope="module")
def web(
    django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Web]:
    port, health_port = free_ports(2)
    tmp_path = tmp_path_factory.mktemp("web")
    home = tmp_path / "home"
    home.mkdir()
    child = Child(
        "web",
        [
            *(sys.executable, "-m", "gunicorn"),
            *("--config", "python:provisioner.webserver"),
            *("--workers", "1", "--threads", str(THREADS)),
            *("--graceful-timeout", "1"),
        ],
        log_dir=tmp_path,
        environment={
            "DATABASE_NAME": connection.settings_dict["NAME"],
            "WEB_BIND": f"127.0.0.1:{port}",
            "HEALTH_BIND": f"127.0.0.1:{health_port}",
            "HOME": str(home),
            "XDG_RUNTIME_DIR": "",
            "LOG_FORMAT": "json",
        },
    )
    try:
        wait_until_healthy(health_port)
        yield Web(port, health_port, home, child.log_path, child.process.pid)
    finally:
        child.stop()


def seconds_to_answer(port: int, path: str) -> float:
    began = time.monotonic()
    assert status_of(port, path) == 200
    return time.monotonic() - began


def test_what_gunicorn_says_of_itself_is_an_event_as_well(web: Web) -> None:
    lines = web.log.read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines if line.startswith("{")]

    assert any(event.startswith("Booting worker") for event in events), lines


GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
WORKSPACES = "/api/v1/workspaces"
POST = b"POST /login/ HTTP/1.1\r\nHost: localhost\r\n"
HALF_A_REQUEST = {
    "nothing": b"",
    "header": GET[:30],
    "body": POST + b"Content-Length: 9\r\n\r\na",
    "chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n9\r\na",
    "second": GET + GET[:30],
}


@pytest.mark.integration
@pytest.mark.parametrize("half", HALF_A_REQUEST.values(), ids=HALF_A_REQUEST)
def test_requests_that_come_slowly_take_no_thread(web: Web, half: bytes) -> None:
    with ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(("127.0.0.1", web.port)))
            for _ in range(3 * THREADS)
        ]
        for each in slow:
            each.sendall(half)

        assert seconds_to_answer(web.port, "/healthz") < 10
        assert seconds_to_answer(web.health_port, "/healthz") < 10
        for each in slow[::2]:
            each.shutdown(socket.SHUT_WR)
        time.sleep(1)  # halves that end are answered
        used_before = web.processor_seconds()
        time.sleep(1)
        assert web.processor_seconds() - used_before < 0.3, "it looks again and again"


def test_a_request_in_pieces_is_answered(web: Web) -> None:
    with socket.create_connection(("127.0.0.1", web.port), timeout=10) as slow:
        for _ in range(2):  # the connection is kept for a second one
            for byte in range(0, len(GET), 7):
                slow.sendall(GET[byte : byte + 7])
                time.sleep(0.05)
            answer = http.client.HTTPResponse(slow)
            answer.begin()
            assert answer.status == 200
            answer.read()


def test_requests_that_come_together_are_answered(web: Web) -> None:
    with socket.create_connection(("127.0.0.1", web.port), timeout=10) as asking:
        asking.sendall(3 * GET)
        said = asking.makefile("rb")
        status_lines = (line for line in said if line.startswith(b"HTTP/1.1"))
        assert [next(status_lines) for _ in range(3)] == 3 * [b"HTTP/1.1 200 OK\r\n"]


@pytest.mark.parametrize("way", ["at once", "in chunks", "when asked to"])
def test_a_large_body_is_read(web: Web, alice: User, way: str) -> None:
    body = json.dumps({"template": "x" * 300_000}).encode()
    headers = {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {token_create(by=alice)[1]}",
    }
    if way == "when asked to":
        headers |= {"Expect": "100-continue", "Content-Length": str(len(body))}
    asking = http.client.HTTPConnection("127.0.0.1", web.port, timeout=30)
    with closing(asking):
        if way == "when asked to":
            asking.putrequest("POST", WORKSPACES)
            for name, value in headers.items():
                asking.putheader(name, value)
            asking.endheaders()
            assert asking.sock.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
            asking.send(body)
        else:
            in_chunks = way == "in chunks"
            asking.request(
                *("POST", WORKSPACES, iter([body]) if in_chunks else body, headers),
                encode_chunked=in_chunks,
            )
        answer = asking.getresponse()
        assert answer.status == 400
        assert "characters" in answer.read().decode(), "what is refused is its length"


def test_there_are_probes_alone_at_their_address(web: Web) -> None:
    assert status_of(web.health_port, "/readyz") == 503  # there is no worker
    assert status_of(web.health_port, "/cli") == 404
    assert status_of(web.port, "/cli") == 200
    assert status_of(web.port, "/healthz") == 200


def test_gunicorn_leaves_nothing_in_a_home_directory(web: Web) -> None:
    assert list(web.home.iterdir()) == []
    assert "Control" not in web.log.read_text()


def test_waits_that_could_take_all_threads_are_refused(settings: Settings) -> None:
    config = Config()
    config.set("threads", 8)
    with pytest.raises(SystemExit, match="API_WAITS_PER_PROCESS"):
        Worker.check_config(config, log=None)
    settings.API_WAITS_PER_PROCESS = 7
    Worker.check_config(config, log=None)


def test_seventy_who_wait_hold_up_nobody(web: Web, alice: User) -> None:
    template = SnapshotFactory.create().template
    workspace = workspace_create(by=alice, template=template)
    path = f"/api/v1/workspaces/{workspace.pk}?wait=30"
    tokens = [token_create(by=alice)[1]]
    admins = [UserFactory.create(is_staff=True, is_superuser=True) for _ in range(9)]
    tokens += [token_create(by=admin)[1] for admin in admins]

    with ExitStack() as stack:
        waiting = [
            stack.enter_context(closing(send(web.port, path, token=tokens[n % 10])))
            for n in range(70)
        ]
        assert seconds_to_answer(web.health_port, "/healthz") < 10
        assert seconds_to_answer(web.port, "/healthz") < SECONDS_FOR_SEVENTY
        answers = [each.getresponse() for each in answered(waiting, number=62)]

    assert {answer.status for answer in answers} == {202}
    assert {answer.headers["Retry-After"] for answer in answers} == {"5"}


def answered(
    asking: list[http.client.HTTPConnection], *, number: int
) -> list[http.client.HTTPConnection]:
    """Return those with an answer, once there are so many; more would be too many."""
    ends = time.monotonic() + SECONDS_FOR_SEVENTY
    found: list[http.client.HTTPConnection] = []
    while len(found) < number and time.monotonic() < ends:
        ready, _, _ = select.select([each.sock for each in asking], [], [], 0.1)
        found = [each for each in asking if each.sock in ready]
    assert len(found) == number
    return found
