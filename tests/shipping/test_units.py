"""Units of systemd: systemd itself reads them, and says how exposed they are."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

DOCKER: Path = settings.BASE_DIR / "docker"
PROGRAM = "/opt/cloneyard/bin/cloneyard-server"
# Source: systemd-analyze(1) security, in tenths: 0 is none, 100 is all.
EXPOSED_AT_MOST = {
    "cloneyard-web.service": 20,
    "cloneyard-worker.service": 20,
    # It is root, and acts as others.
    "cloneyard-host-worker@munich.service": 40,
    # For trials: it is root, mounts, and changes owners.
    "cloneyard-lab.service": 96,
}
WITH_DROP_INS = {
    ("commands",): 60,
    ("mounts",): 55,
    ("sandboxes",): 45,
    ("commands", "mounts"): 65,
}
HOST_WORKER = "cloneyard-host-worker@munich.service"


def installed(name: str, tmp_path: Path) -> Path:
    """A unit as it is installed, with a program that is here."""
    text = (DOCKER / re.sub(r"@\w+", "@", name)).read_text()
    assert f"ExecStart={PROGRAM} " in text
    path = tmp_path / name
    path.write_text(text.replace(PROGRAM, "/bin/true"))
    return path


@pytest.fixture(params=EXPOSED_AT_MOST)
def unit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return installed(request.param, tmp_path)


def analyzed(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_systemd_understands_every_line(unit: Path) -> None:
    verified = analyzed("verify", "--man=no", unit)
    assert (verified.returncode, verified.stderr) == (0, "")


def test_a_unit_is_no_more_exposed_than_it_has_to_be(unit: Path) -> None:
    threshold = f"--threshold={EXPOSED_AT_MOST[unit.name]}"
    judged = analyzed("security", "--offline=true", "--no-pager", threshold, unit)
    assert judged.returncode == 0, judged.stdout


@pytest.mark.parametrize("names", WITH_DROP_INS)
def test_drop_ins_allow_what_they_name_alone(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    """Capabilities: tests/gateways/hosts/test_unit_capabilities.py."""
    path = installed(HOST_WORKER, tmp_path)
    (tmp_path / f"{HOST_WORKER}.d").mkdir()
    for name in names:
        drop_in = DOCKER / f"cloneyard-host-worker-{name}.conf"
        text = drop_in.read_text().replace(PROGRAM, "/bin/true")
        (tmp_path / f"{HOST_WORKER}.d" / f"{name}.conf").write_text(text)

    verified = analyzed("verify", "--man=no", path)
    threshold = f"--threshold={WITH_DROP_INS[names]}"
    judged = analyzed("security", "--offline=true", "--no-pager", threshold, path)

    assert (verified.returncode, verified.stderr) == (0, "")
    assert judged.returncode == 0, judged.stdout
    holds = {line.split()[1] for line in judged.stdout.splitlines() if "✓" in line}
    makes_namespaces = "RestrictNamespaces=~mnt" not in holds
    assert makes_namespaces == ("commands" in names)
    assert ("SystemCallFilter=~@mount" in holds) == (names == ("sandboxes",))
    if "mounts" in names:  # nothing that gives it mounts of its own
        of_its_own = [line for line in holds if line.startswith(("Protect", "Private"))]
        assert of_its_own == []
