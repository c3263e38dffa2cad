"""A job that waits already is not queued a second time, and nothing breaks off."""

from __future__ import annotations

import pytest
from django.db import transaction
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.workspaces.queueing import defer_once

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_job_with_a_taken_lock_is_left_out_inside_a_transaction(
    jobs_emptied: None,
) -> None:
    job = app.configure_task("sweep_exports", queueing_lock="one")

    with transaction.atomic():
        assert defer_once(job, timestamp=0)
        assert not defer_once(job, timestamp=0)
        waiting = ProcrastinateJob.objects.filter(queueing_lock="one").count()

    assert waiting == 1
