"""The official client's own test suite, run against the lab over `rsh:`.

It is not part of this repository: give the path of `p4test.py` (github.com/perforce/
p4python) as P4TEST_FILE. Each of its tests runs in a process of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITE = os.environ.get("P4TEST_FILE", "")
# Each with the reason why it is not part of the lab.
NOT_IN_LAB = {
    "testResolve": "the resolve of a file type",
    "testSpecdefTrigger": "triggers that run",
    "testGraph": "graph depots",
    "testDVCS_init": "personal servers",
    "testDVCS_clone": "personal servers",
}
_P4D = f"""#!/bin/sh
export PYTHONPATH={ROOT} LAB_P4PASSWD=
exec {sys.executable} -m provisioner.lab.perforce --security 0 \\
  --admin-user "$(id -un)" "$@"
"""


def names() -> list[str]:
    if not SUITE:
        return []
    text = Path(SUITE).read_text()
    # Deeper ones belong to interpreters of long ago.
    return re.findall(r"^    def (test\w+)", text, re.MULTILINE)


@pytest.mark.skipif(not SUITE, reason="P4TEST_FILE does not name p4test.py")
def test_the_suite_is_known() -> None:
    assert set(NOT_IN_LAB) <= set(names())
    assert len(names()) - len(NOT_IN_LAB) >= 30


@pytest.mark.parametrize("name", names())
@pytest.mark.timeout(150, method="thread")
def test_client_suite(name: str, tmp_path: Path) -> None:
    if name in NOT_IN_LAB:
        pytest.skip(f"not part of the lab: {NOT_IN_LAB[name]}")
    server = tmp_path / "bin" / "p4d"
    server.parent.mkdir()
    server.write_text(_P4D)
    server.chmod(0o755)

    done = subprocess.run(
        [sys.executable, "-m", "unittest", f"p4test.TestP4.{name}"],
        cwd=tmp_path,
        env={
            "HOME": str(tmp_path),
            "P4TICKETS": str(tmp_path / "tickets"),
            "P4ENVIRO": str(tmp_path / "enviro"),
            "PATH": f"{server.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(Path(SUITE).parent),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr[-3000:]
