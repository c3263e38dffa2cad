"""The months that events are stored by, each a partition."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import connection, transaction

from provisioner.audit_log.models import Event

_TABLE = Event._meta.db_table
# Two that make the same month wait for each other.
_LOCK = 0x5E_71_07
# Triggers for rows come from the table; the one for TRUNCATE each part needs itself.
# The rest is locked meanwhile, and is next to empty.
_MAKE = """
    CREATE TABLE {part} PARTITION OF {table} FOR VALUES FROM ('{begin}') TO ('{end}');
    CREATE TRIGGER audit_log_is_append_only BEFORE TRUNCATE ON {part}
        FOR EACH STATEMENT EXECUTE FUNCTION cloneyard_audit_log_is_append_only();
    ALTER TABLE {part} ENABLE ALWAYS TRIGGER audit_log_is_append_only;
"""


@dataclass(frozen=True, order=True)
class Month:
    """A month by UTC."""

    begin: dt.date

    @property
    def table(self) -> str:
        return f"{_TABLE}_{self.begin:%Y%m}"

    @property
    def next(self) -> Month:
        return month_of(self.begin + dt.timedelta(days=31))


def month_of(day: dt.date) -> Month:
    return Month(dt.date(day.year, day.month, 1))


def ensure_months(first: dt.date, last: dt.date) -> None:
    """Ensure that events from one day to another have parts of their own.

    Events whose month has none are stored in the rest, which is never dropped. So is a
    month that some are there of already: their part is not made any more. Safe to
    repeat.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        known = set(_existing())
        for month in _months(first, last):
            if month in known or _is_in_rest(month):
                continue
            cursor.execute(
                _MAKE.format(
                    part=month.table,
                    table=_TABLE,
                    begin=f"{month.begin} 00:00+00",
                    end=f"{month.next.begin} 00:00+00",
                )
            )


def drop_months_before(day: dt.date) -> int:
    """Drop each month that ended before this day; return how many events were in them.

    Call it in a transaction, and record it there.

    Raises: OperationalError (somebody reads or writes for longer; nothing is dropped).
    """
    deleted = 0
    old = [month for month in _existing() if month.next.begin <= day]
    with connection.cursor() as cursor:
        # Before the first is dropped: from then on nobody else writes an event.
        for month in old:
            cursor.execute(f"SELECT count(*) FROM {month.table}")  # noqa: S608 - ours
            [count] = cursor.fetchone()
            deleted += count
        cursor.execute("SET LOCAL lock_timeout = '3s'")
        for month in old:
            cursor.execute(f"DROP TABLE {month.table}")
    return deleted


def _months(first: dt.date, last: dt.date) -> Iterator[Month]:
    month = month_of(first)
    while month.begin <= last:
        yield month
        month = month.next


def _is_in_rest(month: Month) -> bool:
    begin, end = (
        dt.datetime.combine(day, dt.time(), tzinfo=dt.UTC)
        for day in (month.begin, month.next.begin)
    )
    return Event.objects.filter(at__gte=begin, at__lt=end).exists()


def _existing() -> list[Month]:
    """Return the months that there are parts for, the oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT right(inhrelid::regclass::text, 6) FROM pg_inherits "
            "WHERE inhparent = %s::regclass AND inhrelid <> %s::regclass",
            [_TABLE, f"{_TABLE}_rest"],
        )
        return sorted(
            Month(dt.date(int(name[:4]), int(name[4:]), 1))
            for (name,) in cursor.fetchall()
        )
