"""A web server that receives webhooks: it records requests, or fails on demand."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Heard:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Listener:
    """`codes` are the answers to come, then 204s. `trouble` is for all requests.

    `retry_after` goes with each answer that is not empty.
    """

    port: int
    codes: list[int] = field(default_factory=list)
    trouble: str = ""
    retry_after: str = ""
    heard: list[Heard] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?a=1"

    @property
    def bodies(self) -> list[bytes]:
        return [each.body for each in self.heard]


def _handler(listener: Listener) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            listener.heard.append(Heard(self.path, dict(self.headers), body))
            if listener.trouble == "drips":
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                while not listener.is_over.wait(0.05):
                    try:
                        self.wfile.write(b"X-A: b\r\n")
                    except OSError:
                        return
                return
            if listener.trouble == "hangs up":
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if listener.trouble == "talks too much":
                self.send_response(200)
                self.end_headers()
                try:
                    for _ in range(200):
                        self.wfile.write(b"x" * 65536)
                except OSError:
                    return
                return
            code = listener.codes.pop(0) if listener.codes else 204
            self.send_response(code)
            if 300 <= code < 400:
                self.send_header("Location", f"http://127.0.0.1:{listener.port}/else")
            if listener.retry_after:
                self.send_header("Retry-After", listener.retry_after)
            said = b"" if code == 204 else b"because \0 of it"
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    return Handler


@contextmanager
def listening(*, context: Any = None) -> Iterator[Listener]:
    """Serve on loopback; over TLS where a context is given."""
    listener = Listener(port=0)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(listener))
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    listener.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield listener
    finally:
        listener.is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()
