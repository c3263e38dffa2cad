"""Transfers on a schedule."""

from __future__ import annotations

import datetime as dt

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.engine.subjects import Failure
from provisioner.lib import clocks
from provisioner.mirrors.actions import mirror_update
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.sweeps import RETRIED_AFTER, transfer_all
from provisioner.mirrors.workflows import _fail
from tests.support.factories import MirrorFactory

DAY = dt.timedelta(days=1)


@pytest.fixture
def mirror(admin: User, snapshot: Snapshot) -> Mirror:
    """A mirror without the snapshot; transfers to it start at three o'clock."""
    made = MirrorFactory.create(template=snapshot.template, start="by-hand")
    return mirror_update(by=admin, mirror=made, start="schedule", cron="0 3 * * *")


def test_missed_times_are_made_up_for_once(mirror: Mirror) -> None:
    first = mirror.next_transfer_at
    assert first is not None
    assert (first.hour, first - clocks.database_now() < DAY) == (3, True)
    assert transfer_all(now=first - dt.timedelta(seconds=1)) == 0

    three_days_later = first + 3 * DAY
    assert transfer_all(now=three_days_later) == 1

    mirror.refresh_from_db()
    assert mirror.next_transfer_at == first + 4 * DAY
    engine_states.end_operation(mirror.operations.get(), Operation.State.FAILED)
    _fail(mirror, Failure("mirror_destination_full", "The volume has no room."))
    Mirror.objects.update(failed_at=three_days_later)
    assert transfer_all(now=three_days_later + RETRIED_AFTER) == 0
    assert transfer_all(now=three_days_later + 2 * RETRIED_AFTER) == 1
    Mirror.objects.update(state="ready", status_code="", failed_at=None)
    assert transfer_all(now=three_days_later + 2 * RETRIED_AFTER) == 0


def test_a_mirror_that_is_busy_at_its_time_stays_due(mirror: Mirror) -> None:
    first = mirror.next_transfer_at
    assert first is not None
    Mirror.objects.update(state="transferring")

    assert transfer_all(now=first) == 0

    mirror.refresh_from_db()
    assert mirror.next_transfer_at == first


def test_a_mirror_without_a_schedule_has_no_next_time(
    admin: User, mirror: Mirror
) -> None:
    changed = mirror_update(by=admin, mirror=mirror, start="by-hand")

    assert (changed.cron, changed.next_transfer_at) == ("0 3 * * *", None)
    assert transfer_all(now=clocks.database_now() + 9 * DAY) == 0
