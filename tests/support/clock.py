"""Time as a test wants it: whoever asks Django or the database for it gets this one."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from provisioner.lib import clocks

BEGINS_AT = dt.datetime(2026, 3, 2, 9, 0, tzinfo=dt.UTC)


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self, now: dt.datetime = BEGINS_AT) -> None:
        self.now = now

    def advance(self, **span: float) -> dt.datetime:
        self.now += dt.timedelta(**span)
        return self.now

    def at(self, moment: dt.datetime) -> dt.datetime:
        self.now = moment
        return self.now

    def __call__(self) -> dt.datetime:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timezone, "now", clock)
    monkeypatch.setattr(clocks, "database_now", clock)
    # A new row has its moment from the database: from an expression that is sent to it,
    # rather than from the default of the column.
    monkeypatch.setattr(
        connection.features, "supports_default_keyword_in_insert", False
    )
    monkeypatch.setattr(
        Now, "as_postgresql", lambda self, compiler, connection: ("%s", (clock(),))
    )
    return clock
