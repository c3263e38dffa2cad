"""A peer that answers what a test tells it to: for what the lab's ONTAP never says.

A proxy's page in HTML, a redirect, a certificate nobody knows, a line cut in the
middle: the connection must survive peers that are not ONTAP, or not any more.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import trustme

from provisioner.gateways.ontap.types import OntapAccount

PASSWORD = "correct horse"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """`body` is sent as JSON unless it is bytes; `cuts` closes without a word."""

    status: int = 200
    body: Any = None
    location: str = ""
    delay_seconds: float = 0
    cuts: bool = False


@dataclass
class Peer:
    """Gives its answers in order and remembers what it was asked."""

    port: int
    ca_file: Path
    answers: list[Answer]
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    timeout_seconds: float = 20.0
    stopping: threading.Event = field(default_factory=threading.Event)

    def account(self, *, ca_file: str | None = None) -> OntapAccount:
        return OntapAccount(
            host="localhost",
            port=self.port,
            user="cloneyard",
            password=PASSWORD,
            ca_file=str(self.ca_file) if ca_file is None else ca_file,
            svm="svm1",
            timeout_seconds=self.timeout_seconds,
        )


@contextlib.contextmanager
def running_peer(directory: Path, *answers: Answer) -> Iterator[Peer]:
    authority = trustme.CA()
    ca_file = directory / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            sent = self.rfile.read(length).decode()
            peer.asked.append(f"{self.command} {self.path} {sent}".strip())
            peer.headers.append(dict(self.headers))
            self.give(peer.answers.pop(0))

        do_GET = do_POST = do_PATCH = do_DELETE = do

        def give(self, answer: Answer) -> None:
            peer.stopping.wait(answer.delay_seconds)
            if answer.cuts:
                self.close_connection = True
                return
            body = answer.body
            if not isinstance(body, bytes):
                body = b"" if body is None else json.dumps(body).encode()
            self.send_response(answer.status)
            if answer.location:
                self.send_header("Location", answer.location)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    lines: list[ssl.SSLSocket] = []

    class Server(ThreadingHTTPServer):
        daemon_threads = False

        def get_request(self) -> tuple[Any, Any]:
            connection, address = super().get_request()
            line = context.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
            lines.append(line)
            return line, address

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that turns its back is what some tests are about

    server = Server(("127.0.0.1", 0), Handler)
    peer = Peer(port=server.server_port, ca_file=ca_file, answers=list(answers))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield peer
    finally:
        peer.stopping.set()
        server.shutdown()
        for line in lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        server.server_close()
        thread.join()
