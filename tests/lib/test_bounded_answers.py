"""Answers end, whatever a real server sends and however slowly."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from provisioner.lib.bounded_answers import (
    AnswerTooLong,
    AnswerTooSlow,
    BoundedAnswers,
)

MOST = 100_000


class Bounded(BoundedAnswers):
    most_bytes = MOST
    within_seconds = 1.0


class Answers(BaseHTTPRequestHandler):
    """What the path says; each connection has a number of its own."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        with suppress(ConnectionError):
            getattr(self, self.path[1:])()

    def short(self) -> None:
        self._send(str(self.client_address[1]).encode())

    def at_the_bound(self) -> None:
        self._send(b"a" * MOST)

    def zipped(self) -> None:
        self._send(gzip.compress(b"a" * (MOST + 1)), encoding="gzip")

    def endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(b"a" * 10_000)

    def endless_chunks(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while True:
            self.wfile.write(b"1000\r\n" + b"a" * 0x1000 + b"\r\n")

    def dribbled(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        while True:
            self.wfile.write(b"a")
            time.sleep(0.1)

    def _send(self, body: bytes, *, encoding: str = "identity") -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Encoding", encoding)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.mount("http://", Bounded())
        yield session


def test_what_is_short_enough_is_whole(session: requests.Session, address: str) -> None:
    answer = session.get(f"{address}/at_the_bound", timeout=5)
    assert answer.content == b"a" * MOST
    first, second = (session.get(f"{address}/short", timeout=5) for _ in range(2))
    assert first.text == second.text, "the connection is used again"


@pytest.mark.parametrize("path", ["zipped", "endless", "endless_chunks"])
def test_what_is_too_long_ends(
    path: str, session: requests.Session, address: str
) -> None:
    with pytest.raises(AnswerTooLong):
        session.get(f"{address}/{path}", timeout=5)
    assert session.get(f"{address}/short", timeout=5).ok


def test_what_comes_byte_by_byte_ends(session: requests.Session, address: str) -> None:
    with pytest.raises(AnswerTooSlow):
        session.get(f"{address}/dribbled", timeout=5)
