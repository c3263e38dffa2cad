"""How much was moved off commit servers: sums of traffic by day."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet, Sum

from provisioner.accounts.models import User
from provisioner.lib.rows import with_words
from provisioner.lib.sizes import size_text
from provisioner.routing.models import TrafficDay
from provisioner.sites.models import PerforceServer, ServerKind
from provisioner.web.charts import Chart, Point, Unit

AMOUNTS = ("commands", "synced_files", "synced_bytes", "flushed_files")


def traffic_matching(
    user: User,
    *,
    text: str = "",
    purpose: str = "",
    since: dt.date | None = None,
    until: dt.date | None = None,
) -> QuerySet[TrafficDay]:
    """Return the traffic of these days (UTC) and words; nothing for most people."""
    rows = TrafficDay.objects.select_related("server", "account")
    if not user.is_administrator:
        return rows.none()
    fields = ("server__name", "account__username")
    rows = with_words(rows, text, *fields)
    if purpose:
        rows = rows.filter(purpose=purpose)
    if since:
        rows = rows.filter(day__gte=since)
    return rows.filter(day__lte=until) if until else rows


@dataclass(frozen=True, kw_only=True)
class Moved:
    """An amount, and how much of it went to other servers than commit servers."""

    total: int
    moved: int

    @property
    def percent(self) -> int | None:
        """The share that was moved; None of nothing."""
        return 100 * self.moved // self.total if self.total else None

    @property
    def share(self) -> str:
        """Such as "98 %"."""
        return "nothing yet" if self.percent is None else f"{self.percent} %"


@dataclass(frozen=True, kw_only=True)
class MovedDay:
    """What was moved on a day (UTC), by amount."""

    day: dt.date
    amounts: dict[str, Moved]


def moved_by_day(rows: QuerySet[TrafficDay]) -> list[MovedDay]:
    """Return the sums of each day, oldest first. Two queries."""
    servers = PerforceServer.objects.select_related("upstream__upstream")
    at_commit = [s.pk for s in servers if s.served_by.what == ServerKind.COMMIT]
    elsewhere = ~Q(server__in=at_commit)
    totals = {f"all_{name}": Sum(name) for name in AMOUNTS}
    moved = {
        f"moved_{name}": Sum(name, filter=elsewhere, default=0) for name in AMOUNTS
    }
    days = rows.order_by("day").values("day").annotate(**totals, **moved)
    return [
        MovedDay(
            day=found["day"],
            amounts={
                name: Moved(total=found[f"all_{name}"], moved=found[f"moved_{name}"])
                for name in AMOUNTS
            },
        )
        for found in days
    ]


def moved_in_all(days: Sequence[MovedDay]) -> dict[str, Moved]:
    """Return the sums over days, by amount."""
    return {
        name: Moved(
            total=sum(day.amounts[name].total for day in days),
            moved=sum(day.amounts[name].moved for day in days),
        )
        for name in AMOUNTS
    }


def moved_charts(days: Sequence[MovedDay]) -> list[Chart]:
    """Return the charts of synced bytes and of commands, moved against all."""
    return [
        _chart("synced_bytes", "Synced bytes", Unit.BYTES, days),
        _chart("commands", "Commands", Unit.NUMBER, days),
    ]


def _chart(name: str, title: str, unit: Unit, days: Sequence[MovedDay]) -> Chart:
    def text(number: float) -> str:
        return size_text(int(number)) if unit == Unit.BYTES else f"{int(number):,}"

    def point(day: MovedDay) -> Point:
        amount = day.amounts[name]
        at = dt.datetime.combine(day.day, dt.time(), tzinfo=dt.UTC)
        return Point(
            label=f"{day.day:%-d %b %Y}",
            at=int(at.timestamp()),
            value=amount.moved,
            ceiling=amount.total,
            cells=(text(amount.moved), text(amount.total), amount.share),
            url=f"?since={day.day}&until={day.day}",
        )

    return Chart(
        id=name.replace("_", "-"),
        title=f"{title} moved off commit servers",
        unit=unit,
        columns=("Moved", "All", "Share"),
        points=[point(day) for day in days],
        text=text,
        nothing="Nothing was asked of a Perforce server in this time.",
    )
