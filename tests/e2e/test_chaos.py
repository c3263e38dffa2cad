"""Fifty trials in which everything is killed and cut; nothing is stuck or lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

TRIALS = 50
FIRST_SEED = 1
# Trials that a busy machine has no time for are left out; `make chaos` runs them all.
BEGIN_WITHIN_SECONDS = 150
TIMEOUT_SECONDS = 900
FEWEST_TRIALS = 5


@pytest.mark.timeout(TIMEOUT_SECONDS + 60)
def test_whatever_is_killed_nothing_is_stuck_orphaned_or_lost() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "provisioner.demo.chaos"),
            *("--trials", str(TRIALS), "--seed", str(FIRST_SEED)),
            *("--within-seconds", str(BEGIN_WITHIN_SECONDS)),
        ],
        cwd=settings.BASE_DIR,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )

    assert done.stdout, done.stderr[-3000:]
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["failures"] == [], done.stderr[-3000:]
    assert done.returncode == 0
    assert summary["trials"] >= FEWEST_TRIALS
    assert sum(summary["kills"].values()) > 0
    assert sum(summary["faults"].values()) > 0
