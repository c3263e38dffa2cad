"""One command in the log of a Perforce server, and for whom it waited."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.lib import clocks
from provisioner.server_log import lock_waits as server_lock_waits
from provisioner.server_log.lock_waits import locks_of
from provisioner.server_log.models import LogCommand, ServerLog
from provisioner.web.lists import listing
from tests.support.factories import PerforceServerFactory
from tests.support.logs import a_sync_that_waited, logged, store

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("table", "holder"), [("clients/x(W)", 1), ("changes/7(W)", None), ("db.rev", 2)]
)
def test_only_who_may_have_held_the_same_lock_is_told(
    table: str, holder: int | None
) -> None:
    log = ServerLog.objects.create(server=PerforceServerFactory.create(), path="/log")
    at = clocks.database_now() - dt.timedelta(minutes=5)
    every: dict[str, Any] = {"at": at, "lapse": 5, "table": table}
    store(
        log,
        logged("ann", "user-sync", "0ms+0ms/0ms+4000ms", pid=1, **every)
        + logged("bob", "user-sync", "0ms+0ms/0ms+4900ms", pid=2, **every)
        + logged("ann", "user-edit", "0ms+0ms/4000ms+1ms", pid=3, **every),
    )
    pids = dict(LogCommand.objects.values_list("pk", "pid"))

    [lock] = locks_of(LogCommand.objects.get(pid=3))

    assert (lock.by and pids[lock.by.command_id]) == holder


def test_a_command_that_ran_since_long_before_is_told() -> None:
    log = ServerLog.objects.create(server=PerforceServerFactory.create(), path="/log")
    at, locks = clocks.database_now() - dt.timedelta(hours=2), "0ms+0ms/0ms+"
    store(
        log,
        logged("bob", "user-sync", f"{locks}3200000ms", at=at, lapse=3200, pid=1)
        + logged("eve", "user-sync", f"{locks}3300000ms", at=at, lapse=3, pid=2)
        + logged(
            *("ann", "user-edit", "0ms+0ms/4000ms+1ms"),
            at=at + dt.timedelta(minutes=50),
            lapse=5,
            pid=3,
        ),
    )

    [lock] = locks_of(LogCommand.objects.get(pid=3))

    assert lock.by is not None
    assert lock.by.user == "bob"


def test_long_reads_do_not_hide_the_write_that_held_others_up(
    admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_lock_waits, "MOST_HOLDS", 1)
    sync = a_sync_that_waited(PerforceServerFactory.create(name="commit"))
    store(
        sync.log,
        logged(
            *("eve", "user-sync", "0ms+90000ms/0ms+0ms"),
            at=sync.started_at,
            lapse=95,
            pid=7003,
        ),
    )

    found = server_lock_waits.lock_waits(admin, server=sync.log.server)

    assert [each.by and each.by.user for each in found.blocked] == ["build"]


def test_a_command_is_shown_with_whom_it_waited_for(
    admin: User, signed_in: Callable[[User], Client], api_as_admin: APIClient
) -> None:
    sync = a_sync_that_waited(PerforceServerFactory.create(name="commit"))
    submit = LogCommand.objects.get(pid=7001)

    page = signed_in(admin).get(f"/perforce/commands/{sync.pk}/")
    found = api_as_admin.get(f"/api/v1/server-commands/{sync.pk}").json()
    of_submit = api_as_admin.get(f"/api/v1/server-commands/{submit.pk}").json()
    nothing = signed_in(admin).get(f"/perforce/commands/{sync.pk + 999}/")

    there = f'href="/perforce/commands/{submit.pk}/">dm-CommitSubmit of build</a>'
    assert there in page.text
    assert "7,500 ms" in page.text
    [lock], [held] = found["locks"], of_submit["locks"]
    assert (lock["table"], lock["by"]["command_id"]) == ("db.have", submit.pk)
    assert (held["write_held_ms"], held["by"]) == (9000, None)
    assert nothing.status_code == 404


@pytest.mark.parametrize(
    ("begins", "ends", "pids"),
    [(-30, None, [7002, 7001]), (-30, -1, []), (None, 0, []), (0, 1, [7001])],
)
def test_commands_are_listed_from_one_time_to_another(
    begins: int | None,
    ends: int | None,
    pids: list[int],
    admin: User,
    signed_in: Callable[[User], Client],
    api_as_admin: APIClient,
) -> None:
    a_sync_that_waited(PerforceServerFactory.create(name="commit"))
    submitted = LogCommand.objects.get(pid=7001).started_at
    asked = {
        name: (submitted + dt.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
        for name, seconds in (("since", begins), ("until", ends))
        if seconds is not None
    }

    found = api_as_admin.get("/api/v1/server-commands", asked).json()["results"]
    page = signed_in(admin).get("/perforce/commands/", asked)

    assert [each["pid"] for each in found] == pids
    assert page.text.count("user-sync</a>") == pids.count(7002)
    assert page.text.count("dm-CommitSubmit</a>") == pids.count(7001)


def test_a_table_of_millions_has_an_end(
    admin: User, signed_in: Callable[[User], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST_DOWNLOADED", 1)
    a_sync_that_waited(PerforceServerFactory.create(name="commit"))

    table = signed_in(admin).get("/perforce/commands/", {"as": "csv"})

    assert len(table.getvalue().decode().splitlines()) == 2


def test_a_day_without_commands_leads_to_others(
    admin: User, signed_in: Callable[[User], Client]
) -> None:
    page = signed_in(admin).get("/perforce/commands/")

    assert "No command was logged in this time." in page.text
    assert 'name="since"' in page.text
