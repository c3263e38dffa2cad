"""Two web servers behind a proxy, workers, and a primary with its standby."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from provisioner.catalog.models import Template
from provisioner.demo.processes import Child, Starter, started_anew
from provisioner.workspaces.models import Workspace
from tests.chaos.judge import Fault, Judge
from tests.chaos.witness import OntapWitness, Perforce
from tests.support.documents import blocks_of
from tests.support.lab import Lab
from tests.support.ports import free_ports

ROOT = settings.BASE_DIR
PAGE = "high-availability.md"
HAPROXY = shutil.which("haproxy") or "/usr/sbin/haproxy"
READY_WITHIN_SECONDS = 120.0
SETTLED_WITHIN_SECONDS = 180.0
WEB = [
    *(sys.executable, "-m", "gunicorn", "--config", "python:provisioner.webserver"),
    *("--workers", "1", "--threads", "16"),
]


def at(checkout: Path) -> tuple[str, ...]:
    """Return what runs a command in another checkout than this one."""
    return () if checkout == ROOT else ("env", "-C", str(checkout))


def wait_for(is_so: Callable[[], bool], *, seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < ends, is_so
        time.sleep(0.1)


def status_of(port: int, path: str) -> int:
    """Return the status of an answer, 0 if there is none."""
    with (
        suppress(OSError, http.client.HTTPException),
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as asking,
    ):
        asking.request("GET", path)
        return asking.getresponse().status
    return 0


@dataclass
class Fleet:
    """The processes of an installation, each of which can be lost."""

    log_dir: Path
    children: dict[str, Child] = field(default_factory=dict)
    health_ports: dict[str, int] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    def start(
        self,
        name: str,
        command: list[str],
        *,
        environment: Mapping[str, str] | None = None,
        start: Starter = started_anew,
    ) -> Child:
        child = Child(
            name, command, log_dir=self.log_dir, environment=environment, start=start
        )
        self.children[name] = child
        return child

    def start_worker(self, name: str, *, checkout: Path = ROOT, **how: Any) -> Child:
        """Start a worker, from another checkout if one is given."""
        worker = (sys.executable, "manage.py", "worker", "--concurrency", "4")
        return self.start(name, [*at(checkout), *worker], **how)

    def start_web(self, name: str, *, checkout: Path = ROOT, **how: Any) -> Child:
        """Start a web server, from another checkout if one is given."""
        port, health = free_ports(2)
        self.ports[name], self.health_ports[name] = port, health
        # As WEB_BIND and HEALTH_BIND say.
        binds = ("--bind", f"127.0.0.1:{port}", "--bind", f"127.0.0.1:{health}")
        return self.start(name, [*at(checkout), *WEB, *binds], **how)

    def start_proxy(self) -> int:
        """Start haproxy with the page's configuration; return its port."""
        [port] = free_ports(1)
        [block] = blocks_of(ROOT / "docs" / PAGE, "haproxy")
        text = block.text.replace(
            ":443 ssl crt /etc/haproxy/cloneyard.pem", f"127.0.0.1:{port}"
        )
        for name, web in self.ports.items():
            there = rf"{name}.example.com:8000 check port 8001"
            here = f"127.0.0.1:{web} check port {self.health_ports[name]}"
            assert there in text, name
            text = text.replace(there, here)
        path = self.log_dir / "haproxy.cfg"
        path.write_text(text)
        assert not re.search(r"example\.com|:443", text)
        self.start("proxy", [HAPROXY, "-db", "-f", str(path)])
        return port

    def wait_until_ready(self, port: int) -> None:
        """Wait until the proxy has all web servers, and workers have reported."""
        for health in self.health_ports.values():
            wait_for(
                lambda port=health: status_of(port, "/readyz") == 200,  # type: ignore[misc]
                seconds=READY_WITHIN_SECONDS,
            )
        wait_for(lambda: status_of(port, "/readyz?here") == 200)

    def kill(self, name: str) -> None:
        """End a process with those that it has started."""
        process = self.children[name].process
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def last_words(self) -> str:
        """Return the ends of all logs, for a test that failed."""
        return "\n".join(
            f"--- {name}\n{child.last_lines(count=15)}"
            for name, child in self.children.items()
        )


@contextmanager
def fleet(log_dir: Path) -> Iterator[Fleet]:
    made = Fleet(log_dir)
    log_dir.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:

        @stack.callback
        def stop() -> None:
            for name in made.children:
                with suppress(ProcessLookupError):
                    made.kill(name)

        yield made


def judged(lab: Lab, template: Template, tmp_path: Path) -> list[Fault]:
    """Return what rows and servers disagree in, once nothing moves."""
    site = Template.objects.select_related("site").get(pk=template.pk).site
    p4 = Perforce(
        lab.perforce,
        user=lab.perforce["user"],
        password=lab.perforce["password"],
        scratch=tmp_path / "p4",
    )
    judge = Judge(
        site=site, ontap=OntapWitness({**lab.ontap, "root": lab.root / "ontap"}), p4=p4
    )
    try:
        found: list[Fault] = []
        ends = time.monotonic() + SETTLED_WITHIN_SECONDS
        while time.monotonic() < ends:
            found = judge.check_everything()
            for workspace in Workspace.objects.select_related("site", "template"):
                found += judge.check_at(workspace, None)
            if not found:
                break
            time.sleep(1.0)
        return found
    finally:
        p4.close()
