"""What pages show of logs."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.engine.queues import SERVER_HOST_PREFIX
from provisioner.engine.workers import alive_workers, unserved
from provisioner.server_log.models import ServerLog
from provisioner.server_log.tallies import Moment, Tally, moments
from provisioner.sites.models import PerforceServer
from provisioner.web.charts import Chart, Point, Unit


@dataclass(frozen=True, kw_only=True)
class LogOverview:
    """The log of a server; `lacks_worker` names the queue that nobody serves, or ""."""

    log: ServerLog
    lacks_worker: str

    @property
    def oddities(self) -> list[tuple[str, int]]:
        """What was odd about the log, and how often."""
        counts = (
            ("lines of no known kind", self.log.other_lines),
            ("texts that are not UTF-8", self.log.not_utf8),
            (
                "ends of commands whose beginning is not known",
                self.log.ends_without_start,
            ),
            ("times that the clock was set back", self.log.clock_jumps),
            ("commands dated in the future, not stored", self.log.misdated),
            ("files gone before they were read", self.log.gaps),
        )
        return [(said, count) for said, count in counts if count]


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
        for queue in [f"{SERVER_HOST_PREFIX}{server.name}"]
    ]


def load_chart(reader: User, *, days: int = 1, server: str = "") -> Chart:
    """Return how long commands took and waited, hour by hour or day by day."""
    return Chart(
        id="load",
        title="Time that commands took",
        unit=Unit.SECONDS,
        columns=("Took", "Waited for locks", "Commands"),
        points=[_point(each) for each in moments(reader, days=days, server=server)],
        text=_seconds,
        of="Time (UTC)",
        nothing="No command was logged in this time.",
    )


def _point(moment: Moment) -> Point:
    return Point(
        label=f"{moment.at:%-d %b %H:%M}",
        at=int(moment.at.timestamp()),
        value=moment.lapse_ms / 1000,
        cells=(
            _seconds(moment.lapse_ms / 1000),
            _seconds(moment.wait_ms / 1000),
            f"{moment.commands:,}",
        ),
    )


def _seconds(number: float) -> str:
    return f"{number:,.1f} s"


@dataclass(frozen=True, kw_only=True)
class Share:
    """A tally, and the address of its slowest commands."""

    tally: Tally
    url: str


def shares(tallies: list[Tally], *, by: str, days: int, server: str) -> list[Share]:
    """Return tallies, each with the address of its commands."""
    there = reverse("server-command-list")
    asked = {"days": days, "server": server, "sort": "-lapse_ms"}
    return [
        Share(tally=tally, url=f"{there}?{urlencode({**asked, by: tally.name})}")
        for tally in tallies
    ]
