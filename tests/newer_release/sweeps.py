"""A periodic task that the release before does not have."""

from __future__ import annotations

import os

from procrastinate.contrib.django import app

from tests.newer_release import SWEEP
from tests.newer_release.models import Noted


@app.periodic(cron="* * * * * *")
@app.task(name=SWEEP, queue="sweeps")
def sweep_newer(timestamp: int) -> None:
    Noted.objects.create(what=SWEEP, process_id=os.getpid())
