"""The web server as it is started in production: gunicorn, in a process of its own."""

from __future__ import annotations

import http.client
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from django.db import connection

from provisioner.demo.processes import Child
from tests.support.ports import free_ports

STARTED_WITHIN_SECONDS = 60


def status_of(port: int, path: str) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as asking:
        asking.request("GET", path)
        return asking.getresponse().status


def wait_until_healthy(port: int) -> None:
    ends = time.monotonic() + STARTED_WITHIN_SECONDS
    while True:
        try:
            assert status_of(port, "/healthz") == 200
            return
        except OSError:
            assert time.monotonic() < ends
            time.sleep(0.05)


@contextmanager
def web_server(
    home: Path, environment: Mapping[str, str], *, threads: int = 12
) -> Iterator[tuple[Child, int]]:
    """Start a web server at the database of the test; return it and its port."""
    [port] = free_ports(1)
    child = Child(
        "web",
        [
            *(sys.executable, "-m", "gunicorn"),
            *("--config", "python:provisioner.webserver"),
            *("--workers", "1", "--threads", str(threads)),
            *("--graceful-timeout", "1"),
        ],
        log_dir=home,
        environment={
            "DATABASE_NAME": connection.settings_dict["NAME"],
            "WEB_BIND": f"127.0.0.1:{port}",
            "HOME": str(home),
            "XDG_RUNTIME_DIR": "",
            **environment,
        },
    )
    try:
        wait_until_healthy(port)
        yield child, port
    finally:
        child.stop()
