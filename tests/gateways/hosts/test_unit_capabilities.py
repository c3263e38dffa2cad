"""Host workers do everything with the capabilities of their unit, and need each."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.gateways.hosts import deeds

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities")

DOCKER: Path = settings.BASE_DIR / "docker"
Deed = Callable[[Path], Any]
COMMANDS: set[Deed] = {deeds.run_a_command, deeds.see_other_processes}
MOUNTS: set[Deed] = {deeds.mount_a_volume}
SANDBOXES: set[Deed] = {deeds.end_a_server}
ALWAYS = set(deeds.DEEDS) - COMMANDS - MOUNTS - SANDBOXES


def capabilities(name: str) -> set[str]:
    lines = re.findall(
        r"^CapabilityBoundingSet=(.*)$", (DOCKER / name).read_text(), re.M
    )
    return {one.removeprefix("CAP_").lower() for line in lines for one in line.split()}


UNIT = capabilities("cloneyard-host-worker@.service")
FOR_COMMANDS = capabilities("cloneyard-host-worker-commands.conf")
FOR_MOUNTS = capabilities("cloneyard-host-worker-mounts.conf")
FOR_SANDBOXES = capabilities("cloneyard-host-worker-sandboxes.conf")
# What does not work without it: “each why” of the unit.
WITHOUT = {
    "chown": deeds.give_to_an_owner,
    "fowner": deeds.give_to_an_owner,
    "dac_override": deeds.write_beside_an_owner,
    "setuid": deeds.work_as_an_owner,
    "setgid": deeds.work_as_an_owner,
    "kill": deeds.end_what_works_as_an_owner,
    "sys_admin": deeds.run_a_command,
    "net_admin": deeds.run_a_command,
    "setpcap": deeds.run_a_command,
    "sys_ptrace": deeds.see_other_processes,
}


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that others can enter, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="cy-deeds-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def wrong_in(wanted: set[Deed], place: Path, allowed: set[str]) -> dict[str, list[str]]:
    """Do it with these capabilities alone; return what went wrong."""
    place.mkdir(exist_ok=True)
    for deed in wanted:
        deeds.prepare(place / deed.__name__)
    kept = ",".join(["-all", *(f"+{name}" for name in sorted(allowed))])
    ran = subprocess.run(
        [
            *("setpriv", f"--bounding-set={kept}", "--no-new-privs", "--"),
            *(sys.executable, "-m", deeds.__name__, str(place)),
            *(deed.__name__ for deed in wanted),
        ],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, list[str]] = json.loads(ran.stdout.splitlines()[-1])
    return found


def test_the_unit_is_enough(place: Path) -> None:
    assert wrong_in(ALWAYS, place, UNIT) == {}


def test_the_drop_ins_are_enough(place: Path) -> None:
    assert wrong_in(COMMANDS, place / "commands", UNIT | FOR_COMMANDS) == {}
    assert wrong_in(MOUNTS, place / "mounts", UNIT | FOR_MOUNTS) == {}
    assert wrong_in(SANDBOXES, place / "sandboxes", UNIT | FOR_SANDBOXES) == {}


@pytest.mark.parametrize("name", sorted(UNIT | FOR_COMMANDS | FOR_MOUNTS))
def test_none_is_more_than_it_takes(name: str, place: Path) -> None:
    assert wrong_in({WITHOUT[name]}, place, (UNIT | FOR_COMMANDS) - {name}) != {}


def test_without_its_drop_in_a_host_of_sandboxes_would_leave_servers(
    place: Path,
) -> None:
    assert wrong_in(SANDBOXES, place, UNIT) == {"end_a_server": ["it runs on"]}
    ran = subprocess.run(
        [
            *("setpriv", "--bounding-set=-sys_ptrace", "--"),
            *(sys.executable, "manage.py", "worker", "--queues", "sandboxes.isolated"),
        ],
        cwd=settings.BASE_DIR,
        env={"PATH": os.environ["PATH"], "VAR_DIR": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    [sentence] = ran.stderr.splitlines()
    assert "the drop-in cloneyard-host-worker-sandboxes.conf" in sentence


def test_the_unit_has_what_owners_need_alone() -> None:
    wanted = "chown fowner dac_override setuid setgid kill"
    assert set(wanted.split()) == UNIT
    assert {"sys_admin"} == FOR_MOUNTS
    assert {"sys_ptrace"} == FOR_SANDBOXES


def test_a_worker_without_the_drop_ins_names_them(place: Path) -> None:
    wrong = wrong_in({deeds.run_a_command, deeds.mount_a_volume}, place, UNIT)

    [said] = wrong["run_a_command"]
    assert "may not run commands of templates" in said
    assert "cloneyard-host-worker-commands.conf" in said
    assert not (place / "run_a_command/log").exists(), "nothing was begun"
    [said] = wrong["mount_a_volume"]
    assert "may not mount volumes" in said
    assert "cloneyard-host-worker-mounts.conf" in said
