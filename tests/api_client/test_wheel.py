"""The wheel cloneyard-client as it is installed: typed, with its program."""

from __future__ import annotations

import os
import re
import site
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from django.conf import settings

from tests.support.documents import blocks_of, reading

pytestmark = pytest.mark.integration

ROOT: Path = settings.BASE_DIR
MADE_WITHIN_SECONDS = 300


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install it beside what the tests run with, and return where its programs are."""
    there = tmp_path_factory.mktemp("client")
    venv.create(there / "venv")
    [packages] = there.glob("venv/lib/python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    programs = there / "venv" / "bin"
    page = ROOT / "docs/client.md"
    with reading(there, {**os.environ, "PIP_NO_INDEX": "1"}) as reader:
        reader.run(
            page,
            blocks_of(page, "sh"),
            instead={
                # What it runs on is installed, whatever the age of its mark.
                "make client": f"cd {ROOT}; make --old-file=.venv/.installed client",
                "pip install": f"{programs}/python -m pip install --quiet",
            },
            seconds=MADE_WITHIN_SECONDS,
        )
    return programs


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_script_with_the_installed_library_passes_the_type_checker(
    programs: Path, tmp_path: Path
) -> None:
    strict = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir"]
    script = ROOT / "docs/examples/client.py"
    [on_the_page] = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs/client.md").read_text(), re.DOTALL
    )
    short = tmp_path / "short.py"
    short.write_text(on_the_page)
    wrong = tmp_path / "wrong.py"
    wrong.write_text(script.read_text().replace("workspace.path", "workspace.pth"))
    where = ("--python-executable", programs / "python")

    right_ran = run(*strict, tmp_path / "cache", *where, script, short)
    wrong_ran = run(*strict, tmp_path / "cache", *where, wrong)

    assert right_ran.returncode == 0, right_ran.stdout + right_ran.stderr
    assert '"Workspace" has no attribute "pth"' in wrong_ran.stdout


def test_each_part_of_the_library_can_be_imported(programs: Path) -> None:
    walk = (
        "import cloneyard_client as c, importlib, pkgutil;"
        "print(len([importlib.import_module(m.name) for m in"
        " pkgutil.walk_packages(c.__path__, 'cloneyard_client.')]))"
    )

    ran = run(programs / "python", "-W", "error", "-c", walk)

    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 500


def test_the_mcp_server_is_installed(programs: Path) -> None:
    ran = run(programs / "cloneyard-mcp")

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "cloneyard-mcp: CLONEYARD_SERVER is not an address.\n"


def test_the_client_has_the_version_of_the_server() -> None:
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    its = tomllib.loads((ROOT / "provisioner/api_client/pyproject.toml").read_text())

    assert its["project"]["version"] == ours["version"]
    assert (
        f"cloneyard_client-{ours['version']}-" in (ROOT / "docs/client.md").read_text()
    )
