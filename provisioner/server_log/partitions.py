"""The days that commands, table uses and messages are stored by, each a partition."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from django.db import connection, models, transaction

from provisioner.server_log.models import (
    LockSum,
    LogCommand,
    LogMessage,
    LogSum,
    LogTableUse,
)

# So many names are counted one by one, of each day. PostgreSQL counts a hundred by
# itself, takes all others for as frequent, and looks for a rare one in all rows.
_NAMES_KNOWN = 1000
_NAMES = ("user", "client", "host", "program", "command")

_BY_DAY: tuple[type[models.Model], ...] = (LogCommand, LogTableUse, LogMessage)
# Two that make the same day wait for each other.
_LOCK = 0x5E_71_06


def ensure_days(days: Iterable[dt.date]) -> None:
    """Ensure that rows of these days can be stored. Call it in a transaction.

    Attached, for that lets others read and write meanwhile, and transactions here may
    last minutes; to create a partition in place would lock all days.
    """
    known = _existing()
    missing = [day for day in days if day not in known]
    if not missing:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        known = _existing()
        for day in missing:
            if day in known:
                continue
            begin, end = day.isoformat(), (day + dt.timedelta(days=1)).isoformat()
            for model in _BY_DAY:
                table = model._meta.db_table
                part = f"{table}_{day:%Y%m%d}"
                cursor.execute(
                    f"CREATE TABLE {part} (LIKE {table} INCLUDING DEFAULTS); "
                    f"ALTER TABLE {table} ATTACH PARTITION {part} FOR VALUES "
                    f"FROM ('{begin} 00:00+00') TO ('{end} 00:00+00')"
                )
            know_names(f"{LogCommand._meta.db_table}_{day:%Y%m%d}")


def know_names(part: str) -> None:
    """Have PostgreSQL count the names of a day's commands one by one."""
    counted = ", ".join(
        f'ALTER "{name}" SET STATISTICS {_NAMES_KNOWN}' for name in _NAMES
    )
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {part} {counted}")


def drop_days_before(day: dt.date) -> int:
    """Drop what was stored before this day; return how many days that were.

    Who asks for any day waits behind one who waits to drop another: for some seconds at
    most. Safe to repeat.

    Raises: OperationalError (somebody reads or stores for longer; nothing is dropped).
    """
    old = [each for each in _existing() if each < day]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '3s'")
        for each in old:
            for model in _BY_DAY:
                table = f"{model._meta.db_table}_{each:%Y%m%d}"
                cursor.execute(f"DROP TABLE IF EXISTS {table}")
    return len(old)


def look_at_sums() -> None:
    """Have PostgreSQL look how many names sums have in common.

    Of partitioned tables it does so by itself for each part alone, and plans queries of
    the whole by what it saw of the whole.
    """
    with connection.cursor() as cursor:
        for model in (LogSum, LockSum):
            cursor.execute(f"ANALYZE {model._meta.db_table}")


def _existing() -> set[dt.date]:
    """Return the days that there are partitions for."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT right(inhrelid::regclass::text, 8) FROM pg_inherits "
            "WHERE inhparent = %s::regclass",
            [LogCommand._meta.db_table],
        )
        return {
            dt.datetime.strptime(f"{name}Z", "%Y%m%d%z").date()
            for (name,) in cursor.fetchall()
        }
