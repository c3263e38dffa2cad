"""Releases beside each other: shown, and warned of once an upgrade takes long."""

from __future__ import annotations

import datetime as dt
import time

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from provisioner import __version__
from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.engine import releases
from provisioner.engine.models import WorkerQueues
from provisioner.engine.releases import UPGRADED_WITHIN, side_by_side
from provisioner.engine.worker_pools import Pool
from provisioner.engine.workers import AliveWorker, tell_queues

NOW = timezone.now()
MINUTE = dt.timedelta(minutes=1)
OLD = "0.0.9"


def worker(host: str, release: str, *, since: dt.timedelta) -> AliveWorker:
    return AliveWorker(
        host=host,
        process_id=1,
        queues=None,
        started_at=NOW - since,
        heard_at=NOW,
        release=release,
    )


def began(monkeypatch: pytest.MonkeyPatch, ago: dt.timedelta) -> None:
    """Have this process have begun to answer some time ago."""
    at = time.monotonic() - ago.total_seconds()
    monkeypatch.setattr(releases, "_BEGAN_AT_SECONDS", at)


@pytest.fixture(autouse=True)
def began_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    began(monkeypatch, dt.timedelta(days=9))


def test_two_releases_are_warned_of_once_an_upgrade_takes_long() -> None:
    old = worker("a", OLD, since=dt.timedelta(days=8))
    new = worker("b", __version__, since=dt.timedelta(hours=3))
    again = worker("c", __version__, since=MINUTE)

    assert side_by_side([]) == ""
    assert side_by_side([new, again]) == ""
    assert side_by_side([old, new, again]) == (
        f"Releases {OLD} (a) and {__version__} (b, c, this web server) have run side "
        "by side for 8 d. Upgrade all, or go back with all."
    )


def test_an_upgrade_may_take_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    old = worker("a", OLD, since=dt.timedelta(days=8))
    began(monkeypatch, UPGRADED_WITHIN - MINUTE)
    assert side_by_side([old]) == ""

    began(monkeypatch, UPGRADED_WITHIN + MINUTE)
    assert "side by side for 2 h 1 min." in side_by_side([old])


def test_a_worker_that_does_not_say_its_release_is_of_another_one() -> None:
    silent = worker("a", "", since=dt.timedelta(days=8))
    assert "unknown (a)" in side_by_side([silent])


@pytest.mark.django_db
def test_pages_and_the_api_show_the_release_of_each_worker(
    as_admin: Client, admin: User
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT procrastinate_register_worker_v1()")
        [worker_id] = cursor.fetchone()
    tell_queues(worker_id, pool=Pool(queues=("storage",), slots=1))
    assert WorkerQueues.objects.get().release == __version__
    WorkerQueues.objects.update(release=OLD, started_at=NOW - dt.timedelta(days=8))
    _, token = token_create(by=admin)

    page = as_admin.get("/overview/").text
    workers = as_admin.get("/overview/?more=1").text
    answer = Client().get(
        "/api/v1/workers", headers={"authorization": f"Bearer {token}"}
    )
    figures = as_admin.get("/metrics").text

    assert f'<td data-label="Release">{OLD}</td>' in workers
    assert f"Releases {OLD} (" in page
    [one] = answer.json()["results"]
    assert (one["release"], one["queues"], one["clock_trouble"]) == (
        OLD,
        ["storage"],
        "",
    )
    assert f'cloneyard_worker_releases{{release="{OLD}"}} 1.0' in figures
