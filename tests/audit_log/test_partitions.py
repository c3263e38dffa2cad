"""Months of the audit log: made ahead, dropped by retention, and unchangeable."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import IntegrityError, connection, transaction

from provisioner.audit_log.actions import record_event
from provisioner.audit_log.models import Event
from provisioner.audit_log.partitions import (
    Month,
    drop_months_before,
    ensure_months,
    month_of,
)

pytestmark = pytest.mark.django_db

LONG_AGO = dt.datetime(2021, 3, 31, 23, 30, tzinfo=dt.UTC)
MARCH = Month(dt.date(2021, 3, 1))


def event_at(at: dt.datetime) -> Event:
    return Event.objects.create(at=at, kind="told", message="Told.")


def part_of(event: Event) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tableoid::regclass::text FROM audit_log_event WHERE id = %s",
            [event.pk],
        )
        return str(cursor.fetchone()[0])


def test_an_event_is_stored_in_the_part_of_its_month() -> None:
    ensure_months(MARCH.begin, dt.date(2021, 5, 2))
    ensure_months(MARCH.begin, dt.date(2021, 5, 2))  # nothing is made twice

    assert part_of(event_at(LONG_AGO)) == "audit_log_event_202103"
    later = LONG_AGO + dt.timedelta(minutes=30)
    assert part_of(event_at(later)) == "audit_log_event_202104"


def test_an_event_of_a_month_without_a_part_is_stored_all_the_same() -> None:
    event = event_at(LONG_AGO)

    ensure_months(MARCH.begin, MARCH.begin)

    assert part_of(event) == "audit_log_event_rest"
    assert part_of(event_at(LONG_AGO)) == "audit_log_event_rest"


def test_december_is_followed_by_january() -> None:
    assert month_of(dt.date(2020, 12, 31)).next == Month(dt.date(2021, 1, 1))


def test_months_that_are_over_are_dropped() -> None:
    ensure_months(MARCH.begin, dt.date(2021, 4, 1))
    event_at(LONG_AGO)
    kept = event_at(LONG_AGO + dt.timedelta(days=1))
    check_keys_now()

    assert drop_months_before(dt.date(2021, 4, 30)) == 1

    assert list(Event.objects.filter(kind="told")) == [kept]


def check_keys_now() -> None:
    """Have PostgreSQL check foreign keys, as at the end of a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")


def test_a_month_that_is_not_over_is_not_dropped() -> None:
    ensure_months(MARCH.begin, MARCH.begin)
    kept = event_at(LONG_AGO)

    assert drop_months_before(dt.date(2021, 3, 31)) == 0

    assert Event.objects.filter(pk=kept.pk).exists()


@pytest.mark.parametrize(
    "attempt",
    [
        "DELETE FROM audit_log_event_202103",
        "UPDATE audit_log_event_202103 SET message = ''",
        "TRUNCATE audit_log_event_202103",
        "SET LOCAL session_replication_role = replica; "
        "DELETE FROM audit_log_event_202103",
        "SET LOCAL session_replication_role = replica; TRUNCATE audit_log_event_202103",
        "DELETE FROM audit_log_event_rest",
        "TRUNCATE audit_log_event_rest",
    ],
)
def test_the_database_refuses_to_change_a_part(attempt: str) -> None:
    ensure_months(MARCH.begin, MARCH.begin)
    event_at(LONG_AGO)
    event_at(LONG_AGO + dt.timedelta(days=1))

    with (
        pytest.raises(IntegrityError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "SET CONSTRAINTS ALL IMMEDIATE; SET LOCAL cloneyard.allow_truncate = off; "
            + attempt
        )

    assert Event.objects.filter(kind="told").count() == 2


def test_numbers_go_on_across_months() -> None:
    ensure_months(MARCH.begin, MARCH.begin)
    first = event_at(LONG_AGO)

    record_event(None, kind="said", message="Said.")

    assert Event.objects.get(kind="said").pk > first.pk
