"""Trials in which everything is killed and cut; nothing is stuck or lost."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

TIMEOUT_SECONDS = 1500
# Each kind is among them; a worker is frozen, one cut off, the web server killed.
TRIALS = 10
TELLS_WITHIN_SECONDS = 5


@pytest.mark.integration
@pytest.mark.timeout(TIMEOUT_SECONDS + 60)
def test_whatever_is_killed_nothing_is_stuck_orphaned_or_lost() -> None:
    command = [
        *(sys.executable, "-m", "tests.chaos"),
        *("--trials", str(TRIALS), "--seed", "1"),
    ]
    with subprocess.Popen(
        command,
        cwd=settings.BASE_DIR,
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as trials:
        try:
            said, told = trials.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            trials.send_signal(signal.SIGQUIT)  # tells where each thread is
            with contextlib.suppress(subprocess.TimeoutExpired):
                trials.communicate(timeout=TELLS_WITHIN_SECONDS)
            trials.kill()
            _, told = trials.communicate()
            pytest.fail(told[-20_000:])

    assert said, told[-3000:]
    summary = json.loads(said.splitlines()[-1])
    assert summary["failures"] == [], told[-3000:]
    assert trials.returncode == 0
    assert summary["trials"] == TRIALS
    assert "Restored and dropped again" in summary["drill"][0]
    assert sum(summary["kills"].values()) > 0
    assert sum(summary["faults"].values()) > 0
    assert not list(Path("/var").glob(f"tmp/cloneyard-chaos-{trials.pid}-*"))
