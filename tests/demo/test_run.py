"""A demo whose processes end by themselves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from provisioner.demo.processes import Child, ProcessFailed
from provisioner.demo.run import Demo, DemoOptions


@pytest.mark.parametrize("code", [0, 1])
def test_a_demo_fails_when_a_worker_ends_that_nobody_told_to(
    code: int, tmp_path: Path
) -> None:
    ends = [sys.executable, "-c", f"print('the last word'); raise SystemExit({code})"]
    with Demo(DemoOptions(), say=print) as demo:
        demo.children.append(Child("worker", ends, log_dir=tmp_path))
        demo.children[0].process.wait()

        with pytest.raises(ProcessFailed, match=r"worker ended .* nobody told it to"):
            demo.serve()
