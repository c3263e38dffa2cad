"""Programs that poll: the same command again and again, all through an hour.

Of a user's program, in a client: at least 30 times in an hour, and in at least 11 of
its 12 five-minute parts. A script that asks a thousand times in three minutes does not
poll, nor does a person. Hours are counted once they are over, from their commands.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, fields
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Max, Sum

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.lib import clocks
from provisioner.server_log.models import LogHour, RepeatedCommand
from provisioner.server_log.periods import Period
from provisioner.server_log.tallies import of_whose

TIMES = 30
PARTS = 11
DEFAULT_POLLING_ORDER = "commands"
_HOUR = dt.timedelta(hours=1)
# Servers tell the end of a command after it, and logs are read a little later.
_OVER_AFTER = dt.timedelta(minutes=75)
_NAMES = ("user", "program", "client", "command")
_COUNT = """
INSERT INTO server_log_repeatedcommand (
    log_id, at, "user", program, client, command, origin, commands, parts, lapse_ms,
    rows_scanned)
SELECT log_id, %(at)s, "user", program, client, command, origin, count(*),
    count(DISTINCT floor(extract(epoch FROM started_at) / 300)),
    sum(lapse_ms), sum(rows_scanned)
FROM server_log_logcommand
WHERE log_id = %(log)s AND started_at >= %(at)s AND started_at < %(end)s
GROUP BY log_id, "user", program, client, command, origin
HAVING count(*) >= %(times)s
    AND count(DISTINCT floor(extract(epoch FROM started_at) / 300)) >= %(parts)s
"""


@dataclass(frozen=True, kw_only=True)
class Polling:
    """What a program repeated in a time, and in how many hours of it.

    Hours at two servers are two: each is asked as often.
    """

    user: str
    program: str
    client: str
    command: str
    hours: int
    commands: int
    lapse_ms: int
    rows_scanned: int
    last_hour: dt.datetime

    @property
    def every_seconds(self) -> int:
        """The mean time from one to the next, in those hours."""
        return round(3600 * self.hours / self.commands)


POLLED = (*(field.name for field in fields(Polling)), "every_seconds")
POLLING_ORDERS = ("commands", "hours", "lapse_ms", "rows_scanned")


def polling(
    reader: User,
    *,
    period: Period,
    server: str = "",
    whose: str = "",
    order: str = DEFAULT_POLLING_ORDER,
    most: int | None = None,
) -> list[Polling]:
    """Return the programs that poll, largest first.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    rows = of_whose(
        RepeatedCommand.objects.filter(at__gte=period.begin, at__lt=period.end), whose
    )
    if server:
        rows = rows.filter(log__server__name=server)
    found: Any = (
        rows.order_by()
        .values(*_NAMES)
        .annotate(
            all_hours=Count("pk"),
            all_commands=Sum("commands"),
            all_lapse_ms=Sum("lapse_ms"),
            all_rows_scanned=Sum("rows_scanned"),
            all_last_hour=Max("at"),
        )
        .order_by(f"-all_{order}", *_NAMES)
    )
    return [
        Polling(**{name.removeprefix("all_"): value for name, value in row.items()})
        for row in found[:most]
    ]


def count_repeats() -> None:
    """Count the hours that are over and were not counted, or read more of since.

    Safe to repeat, and at the same time.
    """
    before = clocks.database_now() - _OVER_AFTER
    for pk in LogHour.objects.filter(at__lt=before).values_list("pk", flat=True):
        with transaction.atomic():
            hours = LogHour.objects.select_for_update(skip_locked=True)
            hour = hours.filter(pk=pk).first()
            if hour is None:
                continue
            RepeatedCommand.objects.filter(log=hour.log_id, at=hour.at).delete()
            with connection.cursor() as cursor:
                cursor.execute(
                    _COUNT,
                    {
                        "log": hour.log_id,
                        "at": hour.at,
                        "end": hour.at + _HOUR,
                        "times": TIMES,
                        "parts": PARTS,
                    },
                )
            hour.delete()
