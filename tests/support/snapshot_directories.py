"""What a file server shows of its snapshots, in trees that walks are given."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

OTHER_DAY = 4_000_000_000.0
KINDS = ("its own device", "no device of its own")


@contextmanager
def shown_in(*places: Path, kind: str) -> Iterator[None]:
    """Make `.snapshot` directories here, with a file that others own."""
    if kind == KINDS[0] and os.geteuid():
        pytest.skip("mounts need root")
    mounted = []
    try:
        for place in places:
            snapshots = place / ".snapshot"
            snapshots.mkdir(parents=True)
            if kind == KINDS[0]:
                subprocess.run(["mount", "-t", "tmpfs", "none", snapshots], check=True)
                mounted.append(snapshots)
            copy = snapshots / "hourly.0"
            copy.mkdir()
            (copy / "old.c").write_text(f"see {places[0]}/src/old.c")
            os.utime(copy / "old.c", (OTHER_DAY, OTHER_DAY))
            os.utime(copy, (OTHER_DAY, OTHER_DAY))
            copy.chmod(0o555)
        yield
    finally:
        for snapshots in mounted:
            subprocess.run(["umount", snapshots], check=True)
