"""The section “Containers” of docs/install.md, by Docker: from its build to its end.

The daemon is one of the test's own, on an empty host. It has no registry: what the
image and compose.yaml begin with is made of Debian's packages (.ci/packaging) and of
the PostgreSQL 18 that the embedded one brings.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from provisioner.embedded_postgres.base import PROGRAMS
from tests.support.documents import blocks_of, reading
from tests.support.hosts import Host, empty_host, keep_packages
from tests.support.packaging_tools import PLACE, tool

pytestmark = pytest.mark.integration

PAGE: Path = settings.BASE_DIR / "docs/install.md"
SECTION = "Containers"
WITHIN_SECONDS = 1200
PASSWORD = "a-password-of-a-test"
API = "http://127.0.0.1:8000/api/v1"
SERVICE = "com.docker.compose.service"
STAY_UP = {"web", "worker", "lab", "lab-host-worker", "database"}
OURS = STAY_UP - {"database"}
# What the images of these names are to us: the official Python, too, is in /usr/local.
BASES = {
    "python:3.11": """
FROM debian
RUN python3 -m venv --without-pip --system-site-packages /usr/local \
    && printf '#!/bin/sh\\nexec python -m pip "$@"\\n' >/usr/local/bin/pip \
    && chmod +x /usr/local/bin/pip
ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/packages PIP_DISABLE_PIP_VERSION_CHECK=1
""",
    "python:3.11-slim": """
FROM python:3.11
RUN rm /usr/bin/*gcc*
COPY packages /packages
""",
    "postgres:18": """
FROM debian
COPY postgres /usr/lib/postgres
COPY entrypoint /usr/local/bin/
RUN groupadd -g 999 postgres && useradd -r -u 999 -g postgres postgres \
    && ln -s /usr/lib/postgres/*/pginstall18/bin/* /usr/local/bin/ \
    && install -d -o postgres /var/lib/postgresql
ENTRYPOINT ["entrypoint"]
""",
}
# What the one of the official image does with these settings.
ENTRYPOINT = """#!/bin/sh
set -eu
export PGDATA=/var/lib/postgresql/18/docker
as="setpriv --reuid 999 --regid 999 --clear-groups"
cp "$POSTGRES_PASSWORD_FILE" /tmp/password && chown postgres /tmp/password
[ -e "$PGDATA" ] || $as initdb --no-sync --pwfile /tmp/password -U postgres \
  --auth-local trust --auth-host scram-sha-256
echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
exec $as postgres -c 'listen_addresses=*'
"""


@dataclass(frozen=True)
class Docker:
    host: Host

    def run(self, *words: str | Path, of: str = "docker") -> str:
        ran = self.host.run(of, *words)
        assert ran.returncode == 0, f"{of} {words}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    def inspect(self, service: str) -> dict[str, Any]:
        identity = self.run(
            "ps", "-aq", "--filter", f"label={SERVICE}={service}"
        ).strip()
        [found] = json.loads(self.run("inspect", identity))
        answer: dict[str, Any] = found
        return answer

    def in_it(self, service: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self.host.run("docker", "exec", self.inspect(service)["Id"], *words)


@pytest.fixture
def docker() -> Iterator[Docker]:
    """Give a daemon of its own; what it made is gone at the end."""
    for name in ("docker", "dockerd", "docker-compose", "setpriv"):
        if not shutil.which(name):
            pytest.skip(f"{name} is not here: .ci/system-packages says why")
    tool("debian.tar")
    tool("cyclonedx-py")
    with empty_host() as host, daemon(host):
        yield Docker(host)


@contextmanager
def daemon(host: Host) -> Iterator[None]:
    host.settings["DOCKER_HOST"] = f"unix://{host.directory}/docker.sock"
    where = ("--data-root", host.directory / "data", "--exec-root", "/run/docker")
    log = host.directory / "dockerd.log"
    with log.open("wb") as output:
        running = subprocess.Popen(
            [
                *host.within(),
                *("dockerd", "--host", host.settings["DOCKER_HOST"], *where),
            ],
            env=host.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        while host.run("docker", "info").returncode:
            if running.poll() is not None:
                pytest.skip(f"no container engine runs here: {log.read_text()[-500:]}")
            time.sleep(0.5)
        yield
    finally:
        left = host.run("docker", "ps", "-aq").stdout.split()
        host.run("docker", "rm", "--force", *left)
        running.terminate()
        running.wait(timeout=WITHIN_SECONDS)


def make_bases(docker: Docker) -> None:
    at = docker.host.directory / "bases"
    shutil.move(docker.host.home / "packages", at / "packages")
    of_postgres = PROGRAMS.parents[1]
    for name in (f"{of_postgres.name}/pginstall18", f"{of_postgres.name}.libs"):
        shutil.copytree(of_postgres.parent / name, at / "postgres" / name)
    (at / "entrypoint").write_text(ENTRYPOINT)
    (at / "entrypoint").chmod(0o755)
    docker.run("import", PLACE / "debian.tar", "debian")
    for name, text in BASES.items():
        (at / "Dockerfile").write_text(text)
        docker.run("build", "--quiet", "--tag", name, at)


def copy_checkout(into: Path) -> None:
    left = shutil.ignore_patterns("var", "tests", ".git", ".venv", "*_cache", "dist")
    shutil.copytree(settings.BASE_DIR, into, ignore=left, dirs_exist_ok=True)
    subprocess.run(
        [".ci/sbom", settings.BASE_DIR / ".venv/bin", into / "dist"],
        cwd=settings.BASE_DIR,
        capture_output=True,
        check=True,
    )


def wait_for(said: Callable[[], Any]) -> Any:
    ends = time.monotonic() + WITHIN_SECONDS
    while not (found := said()):
        assert time.monotonic() < ends
        time.sleep(1)
    return found


def ask(docker: Docker, *words: str, path: str) -> Any:
    asked = docker.host.run("curl", "--silent", *words, API + path)
    return json.loads(asked.stdout) if asked.stdout else None


def are_healthy(docker: Docker) -> bool:
    states = {name: docker.inspect(name)["State"] for name in STAY_UP}
    return all(state["Health"]["Status"] == "healthy" for state in states.values())


@pytest.mark.timeout(3600)
def test_compose_leads_to_a_workspace_of_the_lab(docker: Docker) -> None:
    home = docker.host.home
    copy_checkout(home)
    keep_packages(docker.host, lock="requirements.lock")
    make_bases(docker)
    begin, administrator, end = blocks_of(PAGE, "sh", section=SECTION)

    with reading(home, docker.host.environment, within=docker.host.within()) as reader:
        reader.run(
            PAGE,
            [begin, administrator],
            instead={
                "make sbom": ":",
                "docker compose": "docker-compose",
                "exec web": f"exec -T -e DJANGO_SUPERUSER_PASSWORD={PASSWORD} web",
                "createsuperuser": "createsuperuser --no-input --username admin "
                "--email admin@example.com",
            },
            seconds=WITHIN_SECONDS,
        )
        wait_for(lambda: are_healthy(docker))
        assert docker.inspect("migrate")["State"]["ExitCode"] == 0
        healthz = docker.host.run("curl", "--silent", "http://127.0.0.1:8001/healthz")
        assert healthz.stdout == '{"alive": true}'

        for name in OURS:
            show_that_it_may_nothing(docker, name)
        show_a_workspace(docker)

        reader.run(
            PAGE,
            [end],
            instead={"docker compose": "docker-compose"},
            seconds=WITHIN_SECONDS,
        )
    assert docker.run("ps", "-aq") == ""
    assert docker.run("volume", "ls", "-q") == ""
    networks = docker.run("network", "ls", "--format", "{{.Name}}").split()
    assert set(networks) == {"bridge", "host", "none"}


def show_that_it_may_nothing(docker: Docker, name: str) -> None:
    """Nobody's root, with nothing to write to but logs, the lab and /tmp."""
    status = docker.in_it(name, "cat", "/proc/1/status").stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert fields["Uid"].split() == ["999"] * 4
    assert int(fields["CapEff"], 16) == int(fields["CapBnd"], 16) == 0
    assert fields["NoNewPrivs"] == "1"
    assert "Read-only" in docker.in_it(name, "touch", "/app/file").stderr
    assert docker.in_it(name, "touch", "/tmp/file").returncode == 0  # noqa: S108


def show_a_workspace(docker: Docker) -> None:
    told = ask(docker, "-X", "POST", "-u", f"admin:{PASSWORD}", path="/tokens")
    as_admin = ("-H", f"Authorization: Bearer {told['token']}")

    def is_built() -> bool:
        found = ask(docker, *as_admin, path="/templates")["results"]
        return any(template["snapshot"] for template in found)

    wait_for(is_built)
    wanted = json.dumps({"template": "django-db", "purpose": "ci", "lease": 3600})
    kind = ("-H", "Content-Type: application/json", "-d", wanted)
    made = ask(docker, *as_admin, *kind, path="/workspaces?wait=60")
    path = f"/workspaces/{made['id']}?wait=60"
    wait_for(lambda: ask(docker, *as_admin, path=path)["state"] == "ready")
    there = docker.in_it("lab-host-worker", "ls", made["path"])
    assert "__pycache__" in there.stdout.split(), "it is built"
