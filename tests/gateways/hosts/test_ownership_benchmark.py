"""The benchmark of the parallel chown leaves nothing behind when it is stopped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.gateways.hosts.trees import needs_root

PROJECT = Path(__file__).parents[3]


@needs_root
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_benchmark_leaves_no_mount_and_no_file(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "benchmarks/ownership.py", "--only", "slow"),
            *("--entries", "20000", "--directory", str(tmp_path)),
        ],
        cwd=PROJECT,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for_mount_below(tmp_path)
        process.send_signal(number)
        assert process.wait(timeout=60) == 128 + number
    finally:
        process.kill()
        process.wait()
    assert _mounts_below(tmp_path) == []
    assert os.listdir(tmp_path) == []


def _wait_for_mount_below(directory: Path) -> None:
    deadline = time.monotonic() + 60
    while not _mounts_below(directory):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _mounts_below(directory: Path) -> list[str]:
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in mounts if f" {directory}/" in line]
