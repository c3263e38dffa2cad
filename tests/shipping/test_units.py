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
    # It is root, and makes namespaces for commands.
    "cloneyard-host-worker@munich.service": 70,
    # For trials: it is root, mounts, and changes owners.
    "cloneyard-lab.service": 96,
}


@pytest.fixture(params=EXPOSED_AT_MOST)
def unit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A unit as it is installed, with a program that is here."""
    name: str = request.param
    text = (DOCKER / re.sub(r"@\w+", "@", name)).read_text()
    assert f"ExecStart={PROGRAM} " in text
    path = tmp_path / name
    path.write_text(text.replace(PROGRAM, "/bin/true"))
    return path


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


def test_a_host_worker_has_few_capabilities() -> None:
    """Beside those for owners, what sandboxes of commands need."""
    text = (DOCKER / "cloneyard-host-worker@.service").read_text()
    lines = re.findall(r"^CapabilityBoundingSet=(.*)$", text, re.M)
    assert {name for line in lines for name in line.split()} == {
        *("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER"),
        *("CAP_FSETID", "CAP_SETUID", "CAP_SETGID", "CAP_KILL"),
        *("CAP_SYS_ADMIN", "CAP_SYS_CHROOT", "CAP_SETPCAP", "CAP_SETFCAP"),
        "CAP_NET_ADMIN",
    }
