from __future__ import annotations

import re
import time
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from provisioner.dashboard import health
from provisioner.engine.models import WorkerQueues
from provisioner.engine.queues import OWN_SLOTS
from provisioner.engine.worker_pools import Pool
from provisioner.engine.workers import alive_workers, tell_clock, tell_queues
from tests.support.factories import SiteFactory


def heartbeat(*, seconds_ago: float) -> None:
    """Leave the mark of a worker that was heard so long ago."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_workers")
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) "
            "VALUES (now() - %s * interval '1 second')",
            [seconds_ago],
        )


def heartbeat_of(*, seconds_ago: float) -> int:
    """Leave the mark of one more worker; return its id."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) "
            "VALUES (now() - %s * interval '1 second') RETURNING id",
            [seconds_ago],
        )
        return int(cursor.fetchone()[0])


def checks_of(answer: Any) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in answer.json()["checks"]}


def test_healthz_answers_anybody_and_asks_nobody(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries, db: None
) -> None:
    with django_assert_num_queries(0):
        answer = client.get("/healthz")
    assert answer.status_code == 200
    assert answer.json() == {"alive": True}
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.parametrize("address", ["/healthz", "/readyz"])
def test_probes_come_by_address_and_plain_http(
    client: Client, db: None, settings: Settings, address: str
) -> None:
    settings.ALLOWED_HOSTS = ["cloneyard.example.com"]
    settings.SECURE_SSL_REDIRECT = True
    heartbeat(seconds_ago=1)

    answer = client.get(address, headers={"Host": "10.20.0.7:8001"})

    assert answer.status_code == 200, answer.content


def test_readyz_says_that_the_clock_of_the_web_server_is_off(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    heartbeat(seconds_ago=1)
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() - 90)

    answer = client.get("/readyz")

    assert answer.status_code == 503
    reason = str(checks_of(answer)["clock"]["reason"])
    assert re.fullmatch(
        r"The clock of this web server is (89|90) seconds behind the database's\.",
        reason,
    )


def test_a_worker_that_waits_for_its_clock_takes_nobody_off_the_air(
    client: Client, db: None
) -> None:
    """Others do its work; alone it is a failure."""
    off, right = heartbeat_of(seconds_ago=1), heartbeat_of(seconds_ago=1)
    tell_queues(off, pool=ALL_OTHERS)
    tell_clock(off, ahead_seconds=3600.0)
    assert "3,600 seconds ahead" in str(
        checks_of(client.get("/readyz"))["worker"]["reason"]
    )

    tell_queues(right, pool=ALL_OTHERS)
    WorkerQueues.objects.filter(worker_id=right).update(host="another")

    assert client.get("/readyz").status_code == 200


@pytest.mark.parametrize("address", ["/healthz", "/readyz"])
def test_probes_only_look(client: Client, address: str) -> None:
    assert client.post(address).status_code == 405


def test_readyz_is_ready_when_all_is_there(client: Client, db: None) -> None:
    heartbeat(seconds_ago=1)
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["ready"] is True
    assert set(checks_of(answer)) == {"database", "migrations", "clock", "worker"}
    assert all(check["reason"] == "" for check in answer.json()["checks"])


def test_a_proxy_asks_for_what_this_web_server_needs_alone(
    client: Client, db: None
) -> None:
    """No worker runs: that is nothing that another web server would change."""
    answer = client.get("/readyz?here")

    assert answer.status_code == 200
    assert set(checks_of(answer)) == {"database", "migrations", "clock"}


@pytest.mark.parametrize("address", ["/readyz", "/readyz?here"])
def test_readyz_says_that_the_database_is_of_an_older_release(
    client: Client, db: None, address: str
) -> None:
    heartbeat(seconds_ago=1)
    MigrationRecorder.Migration.objects.filter(app="drift").delete()
    MigrationRecorder(connection).record_applied("engine", "0002_of_a_newer_release")

    answer = client.get(address)

    assert answer.status_code == 503
    assert list(checks_of(answer)) == ["database", "migrations"]
    assert checks_of(answer)["migrations"]["reason"] == (
        "The database is of an older release: it lacks drift.0001_initial. Run "
        "`cloneyard-server migrate` first."
    )


def test_a_newer_release_may_have_migrated_the_database(
    client: Client, db: None
) -> None:
    MigrationRecorder(connection).record_applied("engine", "0002_of_a_newer_release")

    assert client.get("/readyz?here").status_code == 200


ALL_OTHERS = Pool(queues=None, slots=1)
ALL_BUILDS, ALL_BISECTIONS, DELIVERIES = (
    Pool(queues=None, own=own, slots=1) for own in OWN_SLOTS[:3]
)


def others(*queues: str) -> Pool:
    return Pool(queues=queues, slots=1)


def test_readyz_says_that_no_worker_runs(client: Client, db: None) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert checks_of(answer)["worker"]["reason"] == "No worker is running."


def test_readyz_says_how_long_no_worker_was_heard(client: Client, db: None) -> None:
    heartbeat(seconds_ago=90)
    worker = checks_of(client.get("/readyz"))["worker"]
    assert worker["ok"] is False
    assert worker["reason"] == "No worker has sent a heartbeat for 90 seconds."


def test_readyz_says_which_queues_of_a_site_nobody_serves(
    client: Client, db: None, settings: Settings
) -> None:
    settings.SITE_SECRET = lambda name, *, key: "s3cret"
    SiteFactory.create(name="munich")
    SiteFactory.create(name="pune")
    first, second, silent = (heartbeat_of(seconds_ago=ago) for ago in (1, 1, 90))
    tell_queues(first, pool=others("storage", "sweeps"))
    tell_queues(second, pool=others("host.munich", "sweeps"))
    tell_queues(silent, pool=ALL_OTHERS)

    checks = checks_of(client.get("/readyz"))
    munich, pune = (checks[f"workers:{name}"]["reason"] for name in ("munich", "pune"))
    missing = "perforce, commands.munich, bisections.munich, deliveries"
    assert f"serves {missing}." in munich
    missing = "perforce, host.pune, commands.pune, bisections.pune, deliveries"
    assert f"serves {missing}." in pune

    tell_queues(first, pool=ALL_BUILDS)
    tell_queues(heartbeat_of(seconds_ago=1), pool=ALL_BISECTIONS)
    tell_queues(heartbeat_of(seconds_ago=1), pool=DELIVERIES)
    tell_queues(second, pool=ALL_OTHERS)
    checks = checks_of(client.get("/readyz"))
    assert checks["workers:munich"]["ok"] is True
    assert checks["workers:pune"]["ok"] is True


def test_workers_that_are_no_more_are_forgotten(db: None) -> None:
    gone = heartbeat_of(seconds_ago=1)
    tell_queues(gone, pool=ALL_OTHERS)
    heartbeat(seconds_ago=1)  # Procrastinate forgot the first
    tell_queues(heartbeat_of(seconds_ago=1), pool=others("storage"))

    assert [worker.queues for worker in alive_workers()] == [["storage"]]
    assert not WorkerQueues.objects.filter(worker_id=gone).exists()


def test_readyz_says_which_far_side_does_not_answer(
    client: Client, db: None, settings: Settings
) -> None:
    settings.SITE_SECRET = lambda name, *, key: "s3cret"
    SiteFactory.create(name="munich", perforce_server__name="depot")
    heartbeat(seconds_ago=1)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    checks = checks_of(answer)
    for name in ("ontap:munich", "perforce:depot"):
        assert checks[name]["ok"] is False
        assert checks[name]["reason"]
    assert checks["database"]["ok"] is True
    assert "s3cret" not in answer.text


def test_one_check_at_a_time_holds_a_thread(client: Client, db: None) -> None:
    with health._one_at_a_time:
        health._last_found.clear()
        unknown = client.get("/readyz")
    heartbeat(seconds_ago=1)
    found = client.get("/readyz")
    heartbeat(seconds_ago=1000)
    with health._one_at_a_time:
        meanwhile = client.get("/readyz")

    assert (unknown.status_code, unknown["Retry-After"]) == (503, "1")
    assert unknown.json() == {"ready": False, "checks": []}
    assert meanwhile.json() == found.json()
    assert client.get("/readyz").status_code == 503
