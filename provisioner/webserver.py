"""How gunicorn serves us: `gunicorn --config python:provisioner.webserver`.

Its command line may say otherwise of each setting. Probes have an address of their
own where HEALTH_BIND says so: what comes there waits for no other request, since it
has threads that serve nothing else.

A thread waits for the rest of a large request only for seconds, for other requests
not at all, and not forever for a client that does not read its answer: otherwise
whoever opens as many connections as there are threads would stop the server.

Source: https://docs.gunicorn.org/en/stable/settings.html
"""

from __future__ import annotations

import errno
import os
import re
import select
import socket
import struct
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.db import connection
from gunicorn.glogging import Logger
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import _DEFER, ThreadWorker

from provisioner.lib.databases import unless_database_is_away
from provisioner.lib.migrations import why_not_migrated

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "provisioner.settings")

# /readyz asks far sides for seconds: /healthz must not wait for it.
HEALTH_THREADS = 2
# So much of a request has to be there before a thread takes it; the rest of a larger
# one has to come within so many seconds.
COMES_FIRST_BYTES = 64 * 1024
READ_WITHIN_SECONDS = 30.0
# A large one has more time, as long as it comes as fast as this: who sends slower than
# that could not hold a thread with less.
SLOWEST_BYTES_A_SECOND = 256 * 1024
# As long may a client read nothing of its answer.
UNREAD_SECONDS = 60
CONTENT_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r]*chunked", re.IGNORECASE)
EXPECTS_ANSWER = re.compile(rb"\r\nexpect:[ \t]*100-continue", re.IGNORECASE)


class Log(Logger):  # type: ignore[misc]  # gunicorn has no types
    """What gunicorn says of itself, among our own events and in their form."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        if cfg.errorlog == "-":
            self.error_log.handlers.clear()
            self.error_log.propagate = True


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """A worker whose threads never wait for a client, with others for probes."""

    def get_thread_pool(self) -> ThreadPoolExecutor:
        return Threads(requests=self.cfg.threads)

    def handle(self, conn: Any) -> Any:
        """Answer a request if it has come; else let the poller wait for it."""
        if self.cfg.is_ssl or conn.sock.family == socket.AF_UNIX:
            return super().handle(conn)  # there is a proxy, or it cannot be seen
        # What came with the request before it was read with that.
        read = conn.parser.unreader.buf.getvalue() if conn.initialized else b""
        if not has_come(conn.sock, read=read):
            return _DEFER
        if not conn.initialized:
            unread = struct.pack("ll", UNREAD_SECONDS, 0)
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, unread)
            conn.init()
            conn.parser.unreader = Unreader(conn.sock)
        conn.parser.unreader.begin()
        return super().handle(conn)

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Refuse to start where waits could take all threads.

        Raises: SystemExit.
        """
        if cfg.threads <= settings.API_WAITS_PER_PROCESS:
            sys.exit(
                f"{cfg.threads} threads have to be more than the "
                f"{settings.API_WAITS_PER_PROCESS} of API_WAITS_PER_PROCESS: the "
                "others answer everything that does not wait."
            )
        super().check_config(cfg, log)


def has_come(sock: socket.socket, *, read: bytes = b"") -> bool:
    """Return whether a request lies in a socket, or the first part of a large one.

    If not, the socket will not count as readable before more of it is there. One that
    ends in its middle is read, too: gunicorn closes the connection then.
    """
    try:
        there = sock.recv(COMES_FIRST_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        there = b""
    missing = _needed(read + there) - len(read + there)
    is_there = missing <= 0 or _ends(sock)
    lowest = 1 if is_there else len(there) + missing
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, lowest)
    return is_there


def _ends(sock: socket.socket) -> bool:
    """Return whether the client sends nothing more."""
    poll = select.poll()
    poll.register(sock, select.POLLRDHUP)
    return bool(poll.poll(0))


def _needed(there: bytes) -> int:
    """Return how many bytes a request needs that begins like this."""
    head, end, body = there.partition(b"\r\n\r\n")
    size = len(head) + len(end)
    length = CONTENT_LENGTH.search(head)
    if not end or (CHUNKED.search(head) and not body.endswith(b"\r\n\r\n")):
        size = len(there) + 1  # where it ends is not said
    elif length is not None:
        size += int(length[1])
    if EXPECTS_ANSWER.search(head) and end:
        size = len(head) + len(end)
    return min(size, COMES_FIRST_BYTES)


class Unreader(SocketUnreader):  # type: ignore[misc]  # gunicorn has no types
    """Reads a request as long as it comes within READ_WITHIN_SECONDS, or fast."""

    def begin(self) -> None:
        self._ends_at = time.monotonic() + READ_WITHIN_SECONDS

    def chunk(self, size_hint: int | None = None) -> bytes:
        # gunicorn has a shorter one while it reads what nobody asked for.
        timeout = self.sock.gettimeout()
        left = max(self._ends_at - time.monotonic(), 0.001)
        self.sock.settimeout(left if timeout is None else min(left, timeout))
        try:
            read: bytes = super().chunk(size_hint)
        except TimeoutError as late:
            raise ConnectionResetError(errno.ECONNRESET, "It came too slowly") from late
        finally:
            self.sock.settimeout(timeout)
        self._ends_at += len(read) / SLOWEST_BYTES_A_SECOND
        return read


class Threads(ThreadPoolExecutor):
    """The threads of a worker: what comes from probes has others."""

    def __init__(self, *, requests: int) -> None:
        super().__init__(requests)
        self._for_probes = ThreadPoolExecutor(HEALTH_THREADS)
        self._probed = settings.HEALTH_BIND.rpartition(":")[2]

    def submit(self, handle: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        host_and_port = args[0].server  # the path of a socket where there is no port
        if self._probed and str(host_and_port[1]) == self._probed:
            return self._for_probes.submit(handle, *args)
        return super().submit(handle, *args)

    def shutdown(self, *args: Any, **kwargs: Any) -> None:
        self._for_probes.shutdown(*args, **kwargs)
        super().shutdown(*args, **kwargs)


def on_starting(server: Any) -> None:
    """Refuse to start on a database of an older release, with one sentence.

    While it is away, pages say so; it may be there soon. The embedded one is looked at
    by `cloneyard-server web`: who connects to it stops it at the end.
    """
    if not settings.DATABASE_URL:
        return
    with unless_database_is_away():
        if why := why_not_migrated():
            sys.exit(why)
    connection.close()


bind = [address for address in (settings.WEB_BIND, settings.HEALTH_BIND) if address]
wsgi_app = "provisioner.wsgi"
worker_class = Worker
logger_class = Log
workers = 2
threads = 16
preload_app = True
# So long may a connection say nothing, and a request stop in its middle.
keepalive = 5
# It would lie in a home directory, which a service does not have.
control_socket_disable = True
