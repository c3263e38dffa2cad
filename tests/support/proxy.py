"""A server that stands before another, and does to answers what was planned."""

from __future__ import annotations

import http.client
import json
import queue
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PASS, LOSE, HOLD = "pass", "lose", "hold"
Mishap = str | tuple[int, dict[str, str]]


class Between(ThreadingHTTPServer):
    """`plan` has what becomes of the next requests; after that they are passed on.

    PASS only passes it on, LOSE does and keeps the answer back, HOLD answers nothing
    until `released`, and a status with headers is an answer of its own.
    """

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.target = urlsplit(target).netloc
        self.plan: list[Mishap] = []
        self.asked: queue.Queue[str] = queue.Queue()
        self.released = threading.Event()
        self.address = f"http://127.0.0.1:{self.server_port}"

    def speak_tls(self, context: ssl.SSLContext) -> None:
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.address = f"https://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: that a caller went away, or trusts us not, is planned."""


class Handler(BaseHTTPRequestHandler):
    server: Between

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        mishap = self.server.plan.pop(0) if self.server.plan else None
        self.server.asked.put(f"{self.command} {self.path}")
        if isinstance(mishap, tuple):
            status, headers = mishap
            told = {"detail": f"This is a {status}.", "code": "planned"}
            return self.answer(status, headers, json.dumps(told).encode())
        if mishap == HOLD:
            self.server.released.wait(timeout=60)
            return None
        status, headers, content = self.pass_on(body)
        if mishap != LOSE:
            self.answer(status, headers, content)
        return None

    def pass_on(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        kept = {k: v for k, v in self.headers.items() if k.lower() != "host"}
        onward = http.client.HTTPConnection(self.server.target, timeout=60)
        with closing(onward):
            onward.request(self.command, self.path, body or None, kept)
            answer = onward.getresponse()
            known = ("Content-Type", "Retry-After")
            passed = {k: answer.headers[k] for k in known if k in answer.headers}
            return answer.status, passed, answer.read()

    def answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Tests look at what callers say."""

    do_GET = do_POST = do_DELETE = handle_any


@contextmanager
def standing_before(target: str) -> Iterator[Between]:
    with Between(target) as between:
        thread = threading.Thread(target=between.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield between
        finally:
            between.released.set()
            between.shutdown()
            thread.join()
