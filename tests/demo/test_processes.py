"""Children that say when they are ready, and never outlive us."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from provisioner.demo.processes import Child, ProcessFailed, manage
from tests.support.processes import is_alive, wait_until_ended


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    """Return a function that starts a Python program as a child."""
    started: list[Child] = []

    def start(program: str, *, reads_output: bool = True, **environment: str) -> Child:
        child = Child(
            "errand",
            [sys.executable, "-c", program],
            log_dir=tmp_path / "logs",
            environment=environment,
            reads_output=reads_output,
        )
        started.append(child)
        return child

    yield start
    for child in started:
        child.stop()


def test_the_line_that_says_ready_is_read(start: Callable[..., Child]) -> None:
    child = start(
        "import json, os, time; "
        "print(json.dumps({'color': os.environ['COLOR']}), flush=True); "
        "time.sleep(60)",
        COLOR="red",
    )

    assert child.read_json_line(timeout_seconds=10) == {"color": "red"}
    assert child.is_running


COMPLAIN = "import sys, time; print('the port is taken', file=sys.stderr, flush=True)"


@pytest.mark.parametrize(
    "program",
    [
        f"{COMPLAIN}; sys.exit(1)",
        f"{COMPLAIN}; print('not JSON', flush=True); time.sleep(60)",
        f"{COMPLAIN}; print('[1]', flush=True); time.sleep(60)",
        f"{COMPLAIN}; time.sleep(60)",
    ],
    ids=["ends", "says what is no JSON", "says what is no object", "says nothing"],
)
def test_a_child_that_is_not_ready_is_stopped_and_its_log_named(
    program: str, start: Callable[..., Child]
) -> None:
    child = start(program)

    with pytest.raises(ProcessFailed, match="errand did not start") as raised:
        child.read_json_line(timeout_seconds=1)

    assert str(child.log_path) in str(raised.value)
    assert "the port is taken" in str(raised.value)
    assert not child.is_running


def test_output_goes_to_the_log(start: Callable[..., Child]) -> None:
    child = start("print('hello')", reads_output=False)
    child.process.wait(10)

    assert child.last_lines() == "hello"
    assert child.ending == "exit code 0"


def test_a_child_that_does_not_listen_is_killed(
    start: Callable[..., Child],
) -> None:
    child = start(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print('{}', flush=True); time.sleep(60)"
    )
    child.read_json_line(timeout_seconds=10)

    child.stop(within_seconds=0.3)

    assert not child.is_running
    assert child.ending == "SIGKILL"


def test_stopping_twice_is_stopping_once(start: Callable[..., Child]) -> None:
    child = start("import time; time.sleep(60)")

    child.stop()
    child.stop()

    assert child.ending == "SIGTERM"


def test_what_ended_can_be_started_again(start: Callable[..., Child]) -> None:
    child = start("print('once more')", reads_output=False)
    child.process.wait(10)

    again = child.started_again()
    again.process.wait(10)

    assert again.starts == 2
    assert again.last_lines() == "once more\nonce more"


def test_children_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; import django; django.setup(); from pathlib import Path; "
        "from provisioner.demo.processes import Child; "
        "child = Child('sleep', ['sleep', '300'], log_dir=Path(sys.argv[1])); "
        "print(child.process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "provisioner.settings"},
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()

    wait_until_ended(child)


def test_management_commands_run_in_our_interpreter() -> None:
    command = manage("worker", "--concurrency", "2")

    assert command[0] == sys.executable
    assert Path(command[1]).is_file()
    assert command[2:] == ["worker", "--concurrency", "2"]
