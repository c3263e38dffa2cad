"""What pages show of logs."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import urlencode

from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.engine.workers import alive_workers, unserved
from provisioner.lib.times import duration_text
from provisioner.server_log.checkpoints import checkpoints
from provisioner.server_log.following import ODDITIES, oddities_in
from provisioner.server_log.models import LogCommand, LogMessage, Origin, ServerLog
from provisioner.server_log.periods import Period
from provisioner.server_log.polling import Polling
from provisioner.server_log.queries import queue_of
from provisioner.server_log.samples import Lapses
from provisioner.server_log.tallies import (
    OURS_MARKED,
    LockTally,
    Moment,
    Tally,
    moments,
)
from provisioner.sites.models import PerforceServer
from provisioner.web.charts import Chart, Point, Stretch, Unit

# That lists offer.
_LONGEST_DAYS = "90"


@dataclass(frozen=True, kw_only=True)
class LogOverview:
    """The log of a server; `lacks_worker` names the queue that nobody serves, or ""."""

    log: ServerLog
    lacks_worker: str

    @property
    def where(self) -> str:
        """Where that worker has to be."""
        is_there = self.log.way == ServerLog.Way.HOST
        return " on the host" if is_there else ""

    @property
    def commands(self) -> str:
        """The address of what was read of it."""
        return self._rows("server-command-list")

    @property
    def errors(self) -> str:
        """The address of the errors in it."""
        return self._rows("server-message-list", kind=LogMessage.Kind.ERROR)

    @property
    def oddities(self) -> list[tuple[str, str]]:
        """What was odd about the log, and the address of its rows, "" without any."""
        counts = {name: getattr(self.log, name) for name in ODDITIES}
        kind = LogMessage.Kind.OTHER
        rows = {"other_lines": self._rows("server-message-list", kind=kind)}
        return [(said, rows.get(name, "")) for name, said in oddities_in(counts)]

    def _rows(self, url_name: str, **criteria: str) -> str:
        asked = {**criteria, "days": _LONGEST_DAYS, "server": self.log.server.name}
        return f"{reverse(url_name)}?{urlencode(asked)}"


def log_overviews() -> list[LogOverview]:
    """Return the log of each server, by name."""
    workers = alive_workers()
    logs = {log.server_id: log for log in ServerLog.objects.select_related("server")}
    return [
        LogOverview(
            log=log,
            lacks_worker=queue if unserved([queue], workers) else "",
        )
        for server in PerforceServer.objects.order_by("name")
        for log in [logs.get(server.pk) or ServerLog(server=server, is_followed=False)]
        for queue in [queue_of(log)]
    ]


OURS_SAID = "Syncs and flushes of Cloneyard"
SLOW_LINES = (30.0, 60.0, 120.0)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which sums are shown; their rows are found by the same."""

    period: Period
    server: str = ""
    whose: str = ""

    def commands(self, **criteria: object) -> str:
        """Return the address of commands, the slowest first."""
        return self._rows("server-command-list", sort="-lapse_ms", **criteria)

    def table_uses(self, **criteria: object) -> str:
        """Return the address of long waits for tables and holds of them."""
        return self._rows("server-table-use-list", **criteria)

    def _rows(self, url_name: str, **criteria: object) -> str:
        kept = {name: str(value) for name, value in criteria.items() if value != ""}
        more = f"&{urlencode(kept)}" if kept else ""
        return f"{reverse(url_name)}?{self._where}{more}"

    @cached_property
    def _where(self) -> str:
        """What all these addresses have in common, of which a page has a hundred."""
        times = {"since": self.period.begin, "until": self.period.end}
        asked = {name: f"{at:%Y-%m-%dT%H:%M}Z" for name, at in times.items()}
        asked |= {"server": self.server, "whose": self.whose}
        return urlencode({name: value for name, value in asked.items() if value})


def load_chart(reader: User, asked: Asked) -> Chart:
    """Return how long commands took and waited, hour by hour or day by day."""
    found = moments(reader, period=asked.period, server=asked.server, whose=asked.whose)
    return Chart(
        id="load",
        title="Time that commands took",
        unit=Unit.SECONDS,
        columns=("Took", "Waited for locks", "Of Cloneyard", "Commands"),
        part=OURS_SAID,
        stretches=_stretches(asked),
        points=[_point(each, asked) for each in found],
        text=duration_text,
        of="Time (UTC)",
        nothing="No command was logged in this time.",
    )


def _point(moment: Moment, asked: Asked) -> Point:
    period = replace(asked.period, begin=moment.at, end=moment.at + asked.period.step)
    return Point(
        label=f"{moment.at:%-d %b %H:%M}",
        at=int(moment.at.timestamp()),
        value=moment.lapse_ms / 1000,
        cells=(
            duration_text(moment.lapse_ms / 1000),
            duration_text(moment.wait_ms / 1000),
            duration_text(moment.ours_ms / 1000),
            f"{moment.commands:,}",
        ),
        part=moment.ours_ms / 1000 or None,
        url=replace(asked, period=period).commands(),
    )


def lapse_chart(found: Lapses, asked: Asked) -> Chart:
    """Return commands by when they began and how long they took."""
    return Chart(
        id="lapses",
        title="Commands by how long they took",
        unit=Unit.SECONDS,
        columns=("Took", "Command", "User", "Waited for locks"),
        points=[_dot(each) for each in found.commands],
        text=duration_text,
        of="Begun (UTC)",
        is_dots=True,
        lines=SLOW_LINES,
        part=OURS_SAID,
        stretches=_stretches(asked),
        nothing="No command was logged in this time.",
    )


def _dot(command: LogCommand) -> Point:
    seconds = command.lapse_ms / 1000
    is_ours = command.origin == Origin.OURS and command.command in OURS_MARKED
    began = command.started_at.astimezone(dt.UTC)
    return Point(
        label=f"{began:%-d %b %H:%M:%S}",
        at=int(began.timestamp()),
        value=seconds,
        cells=(
            duration_text(seconds),
            command.command,
            command.user,
            duration_text(command.wait_ms / 1000),
        ),
        part=seconds if is_ours else None,
        url=reverse("server-command-detail", args=[command.pk]),
    )


def _stretches(asked: Asked) -> list[Stretch]:
    """Return the checkpoints of a time."""
    return [
        Stretch(
            begin=int(each.began.timestamp()),
            end=int(each.ended.timestamp()),
            text=f"{each.began.astimezone(dt.UTC):%-d %b %H:%M:%S} to "
            f"{each.ended.astimezone(dt.UTC):%H:%M:%S} UTC at {each.server}: "
            f"{each.what}{'' if each.command_id else ', as seen running'}",
            url=reverse("server-command-detail", args=[each.command_id])
            if each.command_id
            else "",
        )
        for each in checkpoints(period=asked.period, server=asked.server)
    ]


@dataclass(frozen=True, kw_only=True)
class Share:
    """A tally, and the addresses of its slowest commands and of those that failed.

    `over` are how many took 30, 60 and 120 seconds or more, and their addresses.
    """

    tally: Tally
    url: str
    failed: str
    over: tuple[tuple[int, str], ...]


def shares(tallies: list[Tally], asked: Asked, *, by: str) -> list[Share]:
    """Return tallies, each with the addresses of its commands."""
    return [
        Share(
            tally=tally,
            url=asked.commands(**{by: tally.name}),
            failed=asked.commands(**{by: tally.name, "has_failed": 1}),
            over=tuple(
                (number, asked.commands(**{by: tally.name, "at_least": seconds}))
                for seconds, number in (
                    (30, tally.over_30s),
                    (60, tally.over_60s),
                    (120, tally.over_120s),
                )
            ),
        )
        for tally in tallies
    ]


@dataclass(frozen=True, kw_only=True)
class LockShare:
    """A tally of locks, and the address of the longest of them one by one."""

    tally: LockTally
    url: str


def lock_shares(tallies: list[LockTally], asked: Asked) -> list[LockShare]:
    """Return tallies of locks, each with the address of its rows."""
    return [
        LockShare(
            tally=tally,
            url=asked.table_uses(
                table=tally.table, user=tally.user, command=tally.command
            ),
        )
        for tally in tallies
    ]


@dataclass(frozen=True, kw_only=True)
class PollingShare:
    """What a program repeated, and the address of these commands."""

    polling: Polling
    url: str


def polling_shares(found: list[Polling], asked: Asked) -> list[PollingShare]:
    """Return what programs repeated, each with the address of its rows."""
    return [
        PollingShare(
            polling=each,
            url=asked.commands(
                user=each.user,
                program=each.program,
                client=each.client,
                command=each.command,
            ),
        )
        for each in found
    ]
