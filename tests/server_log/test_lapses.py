"""Commands by lapse, checkpoints, and programs that poll."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.lib import clocks
from provisioner.server_log import samples
from provisioner.server_log.checkpoints import record_seen_checkpoint
from provisioner.server_log.models import LogHour, RepeatedCommand, ServerLog
from provisioner.server_log.sweeps import sweep_repeats
from provisioner.sites.models import PerforceServer
from tests.support.factories import PerforceServerFactory
from tests.support.logs import logged, store

pytestmark = pytest.mark.django_db
NONE = "0ms+0ms/0ms+0ms"
MINUTE = dt.timedelta(minutes=1)


@pytest.fixture
def server() -> PerforceServer:
    return PerforceServerFactory.create(name="commit", p4user="svc")


@pytest.fixture
def log(server: PerforceServer) -> ServerLog:
    return ServerLog.objects.create(server=server, path="/log", is_followed=False)


@pytest.fixture
def at() -> dt.datetime:
    """Return the beginning of an hour that is over."""
    now = clocks.database_now()
    return now.replace(minute=0, second=0, microsecond=0) - dt.timedelta(hours=3)


def dots(page: str, kind: str) -> int:
    found = re.search(rf'<path class="{kind}" d="([^"]*)"', page)
    return found[1].count("h0") if found else 0


def test_commands_are_dots_and_our_syncs_have_a_color_of_their_own(
    log: ServerLog,
    at: dt.datetime,
    admin: User,
    signed_in: Callable[[User], Client],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = "cloneyard/1.0"
    store(
        log,
        logged("ann", "user-sync", NONE, at=at, lapse=140, pid=1)
        + logged("svc", "user-sync -k", NONE, at=at, lapse=8, pid=2, program=ours)
        + logged("svc", "user-info", NONE, at=at, lapse=1, pid=3, program=ours)
        + logged("bob", "user-info", NONE, at=at + 70 * MINUTE, lapse=1, pid=4),
    )
    browser = signed_in(admin)

    whole = browser.get("/perforce/load/lapses/")
    monkeypatch.setattr(samples, "MOST_SLOW", 1)
    cut = browser.get("/perforce/load/lapses/", {"server": "commit"})
    of_bob = browser.get("/perforce/load/lapses/", {"user": "bob"})
    elsewhere = browser.get("/perforce/load/lapses/", {"days": "1", "whose": "builds"})

    assert (dots(whole.text, "dot"), dots(whole.text, "dot dot-part")) == (3, 1)
    assert whole.text.count('class="chart-line"') == 3
    assert "data-lines" in whole.text
    assert "4 commands." in whole.text
    # The slowest, and of those that begin with it none but the first.
    assert dots(cut.text, "dot") == 2
    assert "slowest commands, and the first one of 200 equal" in cut.text
    assert dots(of_bob.text, "dot") == 1
    assert "No command was logged in this time." in elsewhere.text


def test_checkpoints_are_marked_once_from_the_log_or_as_seen(
    log: ServerLog,
    server: PerforceServer,
    at: dt.datetime,
    admin: User,
    signed_in: Callable[[User], Client],
    api_as_admin: APIClient,
) -> None:
    store(
        log,
        logged("super", "user-admin checkpoint -Z", NONE, at=at, lapse=90, pid=1)
        + logged("super", "user-admin setldapusers", NONE, at=at, lapse=1, pid=2),
    )
    later = at + dt.timedelta(hours=1)
    for seen in (at + MINUTE, later, later + MINUTE, later + MINUTE):
        record_seen_checkpoint(server.pk, what="admin dump of root", now=seen)

    found = api_as_admin.get("/api/v1/server-checkpoints").json()["results"]
    page = signed_in(admin).get("/perforce/load/")
    plot = signed_in(admin).get("/perforce/load/lapses/")

    assert [each["what"] for each in found] == [
        *("admin checkpoint -Z of super", "admin dump of root"),
    ]
    assert found[0]["command_id"]
    assert found[1]["began"] == f"{later:%Y-%m-%dT%H:%M:%SZ}"
    assert found[1]["ended"] == f"{later + MINUTE:%Y-%m-%dT%H:%M:%SZ}"
    assert "admin dump of root, as seen running" in page.text
    assert '<path class="chart-stretch"' in page.text
    assert plot.text.count('<path class="chart-stretch"') == 2


def _place_of(hour: LogHour) -> str:
    """Return where the row is: elsewhere, and locked, once it was written again."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT ctid::text FROM server_log_loghour WHERE id = %s", [hour.pk]
        )
        [place] = cursor.fetchone()
    return str(place)


def test_what_a_program_repeats_all_through_an_hour_is_polling(
    log: ServerLog,
    at: dt.datetime,
    admin: User,
    signed_in: Callable[[User], Client],
    api_as_admin: APIClient,
) -> None:
    def asks(user: str, *, every: int, times: int, pid: int) -> str:
        return "".join(
            logged(
                *(user, "user-changes -m1", NONE),
                at=at + dt.timedelta(seconds=every * number),
                lapse=1,
                pid=pid + number,
            )
            for number in range(times)
        )

    text = asks("bot", every=90, times=40, pid=1000)
    store(log, text + asks("loop", every=1, times=300, pid=2000))
    sweep_repeats(0)
    sweep_repeats(0)
    first = RepeatedCommand.objects.get()
    # What is read later counts, too, and nobody counts the hour before it is stored.
    hour = LogHour.objects.create(log=log, at=first.at)
    written = _place_of(hour)
    store(log, asks("bot", every=80, times=44, pid=3000))
    assert _place_of(hour) != written
    sweep_repeats(0)

    [found] = api_as_admin.get("/api/v1/server-polling").json()["results"]
    page = signed_in(admin).get("/perforce/load/polling/")
    csv = signed_in(admin).get("/perforce/load/polling/", {"as": "csv"})

    assert (first.user, first.commands, first.parts) == ("bot", 40, 12)
    assert (found["user"], found["commands"], found["hours"]) == ("bot", 84, 1)
    assert found["every_seconds"] == round(3600 / 84)
    assert "user=bot&amp;" in page.text
    assert len(csv.getvalue().decode().splitlines()) == 2
    assert not LogHour.objects.filter(at=at).exists()
