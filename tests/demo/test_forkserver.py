"""Commands that run in a fork behave like programs that were started."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioner.demo.processes import Child
from tests.support.forkserver import Warm, warm

SAYS_AND_STAYS = """
import json, os, sys, time
print("seen in the log", file=sys.stderr, flush=True)
print(json.dumps({"argv": sys.argv[1:], "pid": os.getpid(), "x": os.environ["X"]}))
sys.stdout.flush()
time.sleep(300)
"""


@pytest.fixture(scope="module")
def programs() -> Iterator[Warm]:
    with warm({}) as programs:
        yield programs


@pytest.fixture
def child(programs: Warm, tmp_path: Path) -> Iterator[Child]:
    script = tmp_path / "errand.py"
    script.write_text(SAYS_AND_STAYS)
    child = Child(
        "errand",
        [sys.executable, str(script), "--loud"],
        log_dir=tmp_path / "logs",
        environment={"X": "here"},
        reads_output=True,
        start=programs,
    )
    yield child
    child.stop()


def test_it_has_a_group_of_its_own_from_the_start(child: Child) -> None:
    assert os.getpgid(child.process.pid) == child.process.pid


def test_it_has_its_arguments_environment_output_and_log(child: Child) -> None:
    said = child.read_json_line(timeout_seconds=60)

    assert said == {"argv": ["--loud"], "pid": child.process.pid, "x": "here"}
    assert child.is_running
    assert os.getpgid(child.process.pid) == child.process.pid

    child.stop()
    assert child.ending == "SIGTERM"
    assert "seen in the log" in child.last_lines()


def test_one_that_was_killed_is_known_to_be_and_starts_again(child: Child) -> None:
    child.read_json_line(timeout_seconds=60)
    os.kill(child.process.pid, signal.SIGKILL)
    child.process.wait(60)
    assert (child.is_running, child.ending) == (False, "SIGKILL")

    again = child.started_again()
    try:
        said = again.read_json_line(timeout_seconds=60)
        assert said["pid"] == again.process.pid != child.process.pid
    finally:
        again.stop()
