"""Commands by how long they took: the slowest of a time, and a sample of the others."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from provisioner.accounts.models import User
from provisioner.server_log.models import LogCommand, LogSum
from provisioner.server_log.periods import Period
from provisioner.server_log.queries import commands_matching
from provisioner.server_log.tallies import origins_of
from provisioner.sites.models import PerforceServer

MOST_SLOW = 300
STRETCHES = 200
# Of each stretch so many are looked at, so that a rare user's is found in time.
_LOOKED_AT = 50
_SAMPLE = """
SELECT found.* FROM generate_series(
    %(begin)s, %(end)s - interval '1 microsecond', %(step)s::interval) AS stretch
CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT * FROM server_log_logcommand
        WHERE started_at >= stretch AND started_at < stretch + %(step)s
            AND started_at < %(end)s
        ORDER BY started_at LIMIT %(looked_at)s
    ) AS first
    WHERE origin = ANY(%(origins)s)
        AND (%(log)s IS NULL OR log_id = %(log)s)
        AND (%(user)s = '' OR "user" = %(user)s)
        AND (%(command)s = '' OR command = %(command)s)
    LIMIT 1
) AS found
"""


@dataclass(frozen=True, kw_only=True)
class Lapses:
    """Commands of a period, oldest first.

    `slow` of them are the slowest, and the others a sample; `is_all` if these are all.
    """

    commands: list[LogCommand]
    slow: int

    @property
    def is_all(self) -> bool:
        return self.slow < MOST_SLOW


def lapses(
    reader: User,
    *,
    period: Period,
    server: str = "",
    whose: str = "",
    user: str = "",
    command: str = "",
) -> Lapses:
    """Return the slowest commands of a time, and the first ones of equal stretches.

    Raises: NotAllowed.
    """
    names = {"user": user, "command": command}
    matching = commands_matching(
        reader,
        since=period.begin,
        until=period.end,
        server=server,
        whose=whose,
        **names,
    )
    known = PerforceServer.objects.filter(name=server).select_related("log").first()
    if server and (known is None or not _has_any(known, period)):
        return Lapses(commands=[], slow=0)
    slowest = list(matching.order_by("-lapse_ms", "-pk")[:MOST_SLOW])
    found = {each.pk: each for each in slowest}
    if len(slowest) == MOST_SLOW:
        log = known.log.pk if known is not None else None
        for each in _sample(period, log=log, whose=whose, **names):
            found.setdefault(each.pk, each)
    return Lapses(
        commands=sorted(found.values(), key=lambda each: (each.started_at, each.pk)),
        slow=len(slowest),
    )


def _has_any(server: PerforceServer, period: Period) -> bool:
    """Return whether a server's log has anything: no index says so among millions."""
    return LogSum.objects.filter(
        log__server=server,
        span=period.span,
        by=LogSum.By.COMMAND,
        at__gte=period.begin,
        at__lt=period.end,
    ).exists()


def _sample(period: Period, **criteria: Any) -> list[LogCommand]:
    step: dt.timedelta = (period.end - period.begin) / STRETCHES
    whose = criteria.pop("whose")
    return list(
        LogCommand.objects.raw(
            _SAMPLE,
            {
                "begin": period.begin,
                "end": period.end,
                "step": step,
                "looked_at": _LOOKED_AT,
                "origins": origins_of(whose),
                **criteria,
            },
        )
    )
