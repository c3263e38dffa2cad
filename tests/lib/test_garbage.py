"""A long-lived process does not stop to collect what was loaded at its start."""

from __future__ import annotations

import json
import subprocess
import sys

from django.conf import settings

from provisioner.lib.garbage import LOOK_AFTER_OBJECTS

ASKED = (
    "import gc, json; print(json.dumps([gc.get_freeze_count(), gc.get_threshold()]))"
)


def test_the_web_server_looks_at_what_comes_after_it_was_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import provisioner.wsgi\n{ASKED}"],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    spared, thresholds = json.loads(done.stdout.splitlines()[-1])
    assert spared > 50_000
    assert thresholds == [LOOK_AFTER_OBJECTS, 10, 10]
