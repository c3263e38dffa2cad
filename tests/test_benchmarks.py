"""A benchmark leaves nothing, also when it is told to end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from django.conf import settings

BUSY = """
from shared.places import place_of_its_own

place = place_of_its_own("test")
import django

django.setup()
from django.db import connection

connection.ensure_connection()
print(place, flush=True)
import time

time.sleep(60)
"""


def test_a_stopped_benchmark_leaves_no_file_and_no_database() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY],
        cwd=settings.BASE_DIR / "benchmarks",
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        place = Path(process.stdout.readline().strip())
        lines = (place / "var" / "postgres" / "postmaster.pid").read_text().split()
        database = Path("/proc", lines[0])
        assert database.exists()
        process.terminate()
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.communicate()
    assert not place.exists()
    deadline = time.monotonic() + 20
    while database.exists():
        assert time.monotonic() < deadline, "PostgreSQL runs on"
        time.sleep(0.05)


def test_every_benchmark_can_begin() -> None:
    """Each has to find the project, and to import no model before Django is set up."""
    folder = settings.BASE_DIR / "benchmarks"
    begun = {
        path.name: subprocess.Popen(
            [sys.executable, "-c", f"import {path.stem}"],
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        for path in sorted(folder.glob("*.py"))
    }
    said = {name: process.communicate()[1] for name, process in begun.items()}

    assert len(begun) > 10
    assert not {name: said[name] for name, each in begun.items() if each.returncode}
