"""The wheel as it is installed: commands, pages, style sheets, documents, the walk."""

from __future__ import annotations

import http.client
import os
import re
import site
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings

pytestmark = pytest.mark.integration

STARTED_WITHIN_SECONDS = 120
FIND_THE_WALK = (
    "from provisioner.gateways.hosts.trees import native; print(native.find_program())"
)


@dataclass(frozen=True)
class Installed:
    """A virtual environment with the wheel, outside of any checkout."""

    directory: Path

    @property
    def variables(self) -> dict[str, str]:
        var = str(self.directory / "var")
        return {"PATH": os.environ["PATH"], "HOME": str(self.directory), "VAR_DIR": var}

    def run(self, program: str, *arguments: str) -> str:
        ran = subprocess.run(
            [self.directory / "venv/bin" / program, *arguments],
            cwd=self.directory,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    """Its dependencies are those of the environment that runs the tests."""
    # PostgreSQL has a uid of its own, which has to come here.
    with tempfile.TemporaryDirectory(prefix="cy-wheel-", dir="/var/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        install(directory)
        yield Installed(directory=directory)


def install(directory: Path) -> None:
    built = directory / "built"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-index"]
    subprocess.run(
        [*pip, "wheel", "--no-build-isolation", *offline, "-w", built, "."],
        cwd=settings.BASE_DIR,
        check=True,
    )
    [wheel] = built.glob("cloneyard-*.whl")
    venv = directory / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    [packages] = venv.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    python = ["--python", str(venv / "bin/python")]
    subprocess.run([*pip, *python, "install", *offline, wheel], check=True)


@pytest.fixture(scope="module")
def port(installed: Installed) -> Iterator[int]:
    """The installed web server, after its migrations."""
    installed.run("cloneyard-server", "migrate", "--verbosity", "0")
    port = free_port()
    log = installed.directory / "web.log"
    with log.open("wb") as output:
        web = subprocess.Popen(
            [installed.directory / "venv/bin/cloneyard-server", "web"],
            cwd=installed.directory,
            env={**installed.variables, "WEB_BIND": f"127.0.0.1:{port}"},
            stdout=output,
            stderr=output,
        )
    try:
        ends = time.monotonic() + STARTED_WITHIN_SECONDS
        while not _answers(port):
            assert web.poll() is None, log.read_text()
            assert time.monotonic() < ends, log.read_text()
            time.sleep(0.2)
        yield port
    finally:
        web.terminate()
        web.wait(timeout=STARTED_WITHIN_SECONDS)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    try:
        return answer_of(port, "/healthz")[0] == 200
    except OSError:
        return False


def test_checks_pass_outside_of_a_checkout(installed: Installed) -> None:
    assert "no issues" in installed.run("cloneyard-server", "check")


def test_the_compiled_walk_is_where_a_host_worker_looks(installed: Installed) -> None:
    found = installed.run("python", "-c", FIND_THE_WALK).strip()
    assert found.startswith(str(installed.directory / "venv/libexec/cloneyard/walk-"))


def test_pages_have_their_style_sheets_and_documents(port: int) -> None:
    status, page = answer_of(port, "/login/")
    sheets = re.findall(r'href="(/static/[^"]+\.css)"', page)
    assert (status, bool(sheets)) == (200, True)
    assert [answer_of(port, sheet)[0] for sheet in sheets] == [200] * len(sheets)


def answer_of(port: int, path: str) -> tuple[int, str]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as asking:
        asking.request("GET", path)
        answer = asking.getresponse()
        return answer.status, answer.read().decode()
