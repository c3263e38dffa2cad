"""The embedded PostgreSQL: started by the first, stopped by the last, killed or not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

STARTED_WITHIN_SECONDS = 60
USE_THE_DATABASE = """
import sys
from pathlib import Path
from provisioner.embedded_postgres.base import start_server
print(start_server(Path(sys.argv[1]))["host"], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def data_dir() -> Iterator[Path]:
    # A short path that another uid can reach: the server has one of its own.
    root = Path(tempfile.mkdtemp(prefix="cy-pg-", dir="/var/tmp"))
    root.chmod(0o755)
    yield root / "postgres"
    shutil.rmtree(root)


def start_user(data_dir: Path) -> subprocess.Popen[str]:
    """Start a process that uses the server until its standard input ends."""
    user = subprocess.Popen(
        [sys.executable, "-c", USE_THE_DATABASE, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert user.stdout is not None
    assert user.stdout.readline().strip()
    return user


def leave(user: subprocess.Popen[str]) -> None:
    with user:
        user.communicate(timeout=STARTED_WITHIN_SECONDS)


def is_running(data_dir: Path) -> bool:
    return (data_dir / "postmaster.pid").exists()


def test_the_last_to_leave_stops_the_server(data_dir: Path) -> None:
    first, second = start_user(data_dir), start_user(data_dir)

    leave(first)
    assert is_running(data_dir)

    leave(second)
    assert not is_running(data_dir)


def test_a_killed_user_does_not_keep_the_server(data_dir: Path) -> None:
    killed, last = start_user(data_dir), start_user(data_dir)
    os.kill(killed.pid, signal.SIGKILL)
    leave(killed)
    time.sleep(0.1)

    leave(last)

    assert not is_running(data_dir)


def test_the_lock_lies_beside_the_data(data_dir: Path) -> None:
    leave(start_user(data_dir))

    assert (data_dir.parent / ".postgres.lock").exists()
