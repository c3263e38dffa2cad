"""Sums of logs over a time, with and without builds, and the rows behind them."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.db.models import Sum
from django.test import Client
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.lib import clocks
from provisioner.server_log import tallies as module_of_tallies
from provisioner.server_log.models import LogSum, ServerLog, Span
from provisioner.server_log.periods import period_of
from provisioner.server_log.tallies import (
    LOCK_ORDERS,
    lock_tallies,
    tallies,
    worst_lock_tallies,
)
from provisioner.sites.models import PerforceServer
from tests.support.factories import PerforceServerFactory, UserFactory
from tests.support.logs import logged, store

pytestmark = pytest.mark.django_db

ORDERS = ("write_held_ms", "wait_ms")
BACKWARDS = {"since": "2026-11-23T09:00:00Z", "until": "2026-11-23T09:00:00Z"}


@pytest.fixture
def server() -> PerforceServer:
    return PerforceServerFactory.create(name="commit", p4user="svc")


@pytest.fixture
def log(server: PerforceServer) -> ServerLog:
    """Return a log of two hours ago, with commands of people, builds and ours."""
    UserFactory.create(username="farm", is_service=True)
    log = ServerLog.objects.create(
        server=server, path="/log", is_followed=False, build_users="jenkins*\n\nbot"
    )
    at = clocks.database_now().replace(minute=5) - dt.timedelta(hours=2)
    none = "0ms+0ms/0ms+0ms"
    ours = "cloneyard/1.0"
    text = "".join(
        (
            logged("ann", "user-sync", none, at=at, lapse=30, pid=1, rows=2_000_000),
            logged("jenkins7", "user-sync", none, at=at, lapse=200, pid=2),
            logged("farm", "user-sync", none, at=at, lapse=100, pid=3),
            logged("svc", "user-sync", none, at=at, lapse=8, pid=4, program=ours),
            logged("svc", "user-sync", none, at=at, lapse=4, pid=5),
            logged("ann", "user-fstat", "0ms+0ms/0ms+900ms", at=at, lapse=1, pid=6),
            logged("bob", "user-edit", "0ms+0ms/700ms+5ms", at=at, lapse=2, pid=7),
        )
    )
    store(log, text)
    return log


@pytest.mark.parametrize(
    ("whose", "took"),
    [("", 342_000), ("without-builds", 42_000), ("builds", 300_000), ("ours", 8_000)],
)
def test_builds_are_told_from_people_and_from_us(
    whose: str, took: int, log: ServerLog, api_as_admin: APIClient
) -> None:
    asked = {"whose": whose} if whose else {}

    found = api_as_admin.get("/api/v1/server-load", asked).json()["results"]
    rows = api_as_admin.get(
        "/api/v1/server-commands", {**asked, "command": "user-sync"}
    ).json()["results"]

    [syncs] = [each for each in found if each["name"] == "user-sync"]
    assert syncs["lapse_ms"] == took
    assert sum(row["lapse_ms"] for row in rows) == took


def test_each_number_leads_to_its_rows(
    log: ServerLog, admin: User, signed_in: Callable[[User], Client]
) -> None:
    browser = signed_in(admin)
    asked = {"whose": "without-builds", "by": "user", "order": "most_rows"}

    page = browser.get("/perforce/load/", {**asked, "more": "1"})

    links = [unescape(each) for each in re.findall(r'href="([^"]+)"', page.text)]
    [slow] = [each for each in links if "user=ann&at_least=30" in each]
    [table] = [each for each in links if each.endswith("table=db.have")]
    assert browser.get(slow).text.count("user-sync</a>") == 1
    assert browser.get(table).text.count("<code>db.have</code>") == 2
    assert "2,000,000 by one command" in page.text
    assert "8.0 s" in page.text
    huge = browser.get("/perforce/commands/", {"at_least_rows": "1000000"})
    assert huge.text.count("user-sync</a>") == 1


def test_locks_are_summed_by_table_and_by_command(
    log: ServerLog,
    admin: User,
    signed_in: Callable[[User], Client],
    api_as_admin: APIClient,
) -> None:
    by_table = api_as_admin.get("/api/v1/server-locks", {"by": "table"}).json()
    waits = {"order": "wait_ms"}
    victims = api_as_admin.get("/api/v1/server-locks", waits).json()["results"]
    uses = api_as_admin.get("/api/v1/server-table-uses", {"user": "bob"}).json()
    page = signed_in(admin).get("/perforce/load/locks/", {"by": "table"})
    csv = signed_in(admin).get("/perforce/load/locks/", {"as": "csv"})

    told_alone = [
        lock_tallies(admin, period=period_of(), order=order, most=1) for order in ORDERS
    ]
    together = worst_lock_tallies(admin, period=period_of(), orders=ORDERS, most=1)
    assert together == told_alone
    assert [each.user for [each] in together] == ["ann", "bob"]
    [table] = by_table["results"]
    assert (table["table"], table["user"], table["wait_ms"]) == ("db.have", "", 700)
    assert table["write_held_ms"] == 905
    assert [(each["user"], each["command"]) for each in victims] == [
        ("bob", "user-edit")
    ]
    [use] = uses["results"]
    assert (use["write_wait_ms"], use["origin"]) == (700, "people")
    assert "<code>db.have</code>" in page.text
    assert len(csv.getvalue().decode().splitlines()) == 3


def test_those_that_are_looked_for_first_are_those_of_all(
    server: PerforceServer, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ServerLog.objects.create(server=server, path="/log", is_followed=False)
    now = clocks.database_now()
    chance = random.Random(24)
    text = "".join(
        logged(
            f"user{chance.randrange(9)}",
            f"user-{chance.choice(('sync', 'edit'))}",
            "{}ms+{}ms/{}ms+{}ms".format(*chance.choices((0, 0, 9, 40, 700), k=4)),
            at=now - dt.timedelta(minutes=5 * (120 - number)),
            lapse=chance.randrange(90),
            pid=number,
        )
        for number in range(120)
    )
    store(log, text)

    def found(most: int) -> list[list[Any]]:
        asked: Any = {"period": period_of(), "most": most}
        return [
            *(
                tallies(admin, by="user", order=n, **asked)
                for n in ("wait_ms", "failed")
            ),
            *(lock_tallies(admin, order=order, **asked) for order in LOCK_ORDERS),
        ]

    looked_for = [found(most) for most in (1, 3, 50)]
    monkeypatch.setattr(module_of_tallies, "_FEW", 0)
    assert looked_for == [found(most) for most in (1, 3, 50)]
    # The log tells of no single lock, so none is the longest.
    assert {len(each) for each in looked_for[1]} == {0, 3}


@pytest.mark.parametrize(
    "path", ["load/", "load/locks/", "load/uses/", "load/waits/", "commands/"]
)
def test_a_time_that_ends_before_it_begins_is_said(
    path: str, server: PerforceServer, admin: User, signed_in: Callable[[User], Client]
) -> None:
    page = signed_in(admin).get(f"/perforce/{path}", {"server": "commit", **BACKWARDS})

    assert "This time is not after the first one. Choose a later one." in page.text


@pytest.mark.parametrize(
    "name", ["load", "locks", "table-uses", "lock-waits", "commands", "messages"]
)
def test_scripts_are_refused_such_a_time(
    name: str, server: PerforceServer, api_as_admin: APIClient
) -> None:
    path = f"/api/v1/server-{name}"

    backwards = api_as_admin.get(path, {"server": "commit", **BACKWARDS})
    too_early = api_as_admin.get(
        path, {"server": "commit", "until": "0001-01-01T00:00:00Z"}
    )

    assert backwards.status_code == 400
    assert "This time is not after the first one." in backwards.json()["detail"]
    assert too_early.status_code == 400


@pytest.mark.parametrize("days", [5, 7, 8, 16, 30])
def test_whole_weeks_and_days_around_them_are_the_same_as_days(
    server: PerforceServer, admin: User, settings: Any, days: int
) -> None:
    settings.SERVER_LOG_DAYS = 60
    log = ServerLog.objects.create(server=server, path="/log", is_followed=False)
    now, none = clocks.database_now(), "0ms+0ms/0ms+0ms"
    text = "".join(
        logged(
            *(f"user{day % 3}", "user-sync", none),
            at=now - day * dt.timedelta(days=1),
            lapse=2**day % 10_007,
            pid=day + 1,
        )
        for day in reversed(range(40))
    )
    store(log, text)
    period = period_of(days=days)

    found = tallies(admin, period=period, by="user")

    begin, *_, end = [at for _, *times in period.parts for at in times]
    assert (begin, end) == (period.begin, period.end)
    days_alone = LogSum.objects.filter(
        span=Span.DAY, by="user", at__gte=period.begin, at__lt=period.end
    )
    by_name = {
        row["name"]: (row["all"], row["took"])
        for row in days_alone.order_by()
        .values("name")
        .annotate(all=Sum("commands"), took=Sum("lapse_ms"))
    }
    assert {t.name: (t.commands, t.lapse_ms) for t in found} == by_name
    assert sum(each.commands for each in found) == days + 1


def test_short_times_count_whole_hours_and_long_ones_whole_days() -> None:
    now = clocks.database_now()
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    two_days = dt.timedelta(days=2)
    begin = day - two_days + dt.timedelta(hours=9, minutes=30)

    short = period_of(since=begin, until=begin + dt.timedelta(minutes=45))
    long = period_of(since=begin - two_days, until=begin + two_days)
    old = period_of(since=begin - 200 * two_days, until=begin - 199.9 * two_days)

    assert (short.begin.hour, short.end.hour, short.span) == (9, 11, Span.HOUR)
    assert long.begin == day - 2 * two_days
    assert (long.end, long.span) == (day + dt.timedelta(days=1), Span.DAY)
    # Sums by hour of then are gone.
    assert old.span == Span.DAY
