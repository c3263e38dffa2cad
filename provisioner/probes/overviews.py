"""What pages show of each server's probe."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import SafeString

from provisioner.lib.times import duration_text
from provisioner.probes.models import ProbePlan, ProbeRun, ProbeWeek
from provisioner.probes.peaks import Counts, Peak, baseline_of, peaks_of
from provisioner.probes.queries import (
    LAPSE,
    Round,
    counts_since,
    lapses_by_hour,
    last_runs,
    plans,
    weeks_of,
)
from provisioner.sites.models import PerforceServer
from provisioner.web.charts import Chart, Point, Unit

CHARTED = dt.timedelta(days=7)
PEAKS_SHOWN = 10
WEEK_NUMBERS = (
    *("Average", "Median", "Maximum", "Minimum", "Rounds", "Gaps", "Errors"),
)


@dataclass(frozen=True, kw_only=True)
class ProbeOverview:
    """A server's probe: its plan, last round, rows of weeks, charts and newest peaks.

    `baseline` is the median number of running commands of the last days, None if none
    were counted.
    """

    plan: ProbePlan
    last: ProbeRun | None
    weeks: SafeString
    commands: SafeString
    charts: list[Chart]
    baseline: float | None
    peaks: list[Peak]


# Dozens of weeks on one page: without a template for each.
def rows_of(weeks: Iterable[ProbeWeek]) -> SafeString:
    """Return weeks as rows of a table."""
    return SafeString("".join(map(_row, weeks)))


def _row(week: ProbeWeek) -> str:
    seconds = (week.average, week.median, week.maximum, week.minimum)
    took = ("–" if n is None else f"{n:.3f} s" for n in seconds)  # noqa: RUF001
    average, median, maximum, minimum = took
    rows = RowsOfWeek(week)
    numbers = (
        *(average, median),
        _linked(maximum, week.maximum, rows.measured(sort="-seconds")),
        _linked(minimum, week.minimum, rows.measured(sort="seconds")),
        _linked(str(week.rounds), week.rounds, rows.measured(sort="at")),
        _linked(str(week.gaps), week.gaps, rows.gaps()),
        _linked(str(week.failed), week.failed, rows.failed()),
    )
    cells = "".join(
        f'<td class="number" data-label="{label}">{number}</td>'
        for label, number in zip(WEEK_NUMBERS, numbers, strict=True)
    )
    return (
        f'<tr><th class="unbroken" scope="row">{week.begin:%-d %b %Y}</th>'
        f'<td data-label="Command">{escape(week.command)}</td>{cells}</tr>'
    )


def _linked(text: str, number: float | None, url: str) -> str:
    return f'<a href="{escape(url)}">{text}</a>' if number else text


@dataclass(frozen=True)
class RowsOfWeek:
    """The addresses of what a week's numbers were made of.

    Of all commands of a round together these are rounds, of one command its times.
    """

    week: ProbeWeek

    def measured(self, *, sort: str) -> str:
        if self.week.command == LAPSE:
            by = sort.replace("seconds", "lapse")
            return f"{self._rounds}&outcome={Round.MEASURED}&sort={by}"
        return f"{self._times}&failed=false&sort={sort}#times"

    def failed(self) -> str:
        if self.week.command == LAPSE:
            return f"{self._rounds}&outcome={Round.FAILED}"
        return f"{self._times}&failed=true#times"

    def gaps(self) -> str:
        return f"{self._rounds}&outcome={Round.GAP}"

    # Once a week: a page has hundreds of addresses.
    @cached_property
    def _rounds(self) -> str:
        return f"{reverse('probe-rounds')}?{urlencode(self._where)}"

    @cached_property
    def _times(self) -> str:
        asked = {**self._where, "command": self.week.command}
        return f"{reverse('probe-list')}?{urlencode(asked)}"

    @property
    def _where(self) -> dict[str, str]:
        begin = self.week.begin
        return {
            "server": self.week.server.name,
            "since": f"{begin}T00:00Z",
            "until": f"{begin + dt.timedelta(weeks=1)}T00:00Z",
        }


def probe_overviews(*, now: dt.datetime) -> list[ProbeOverview]:
    """Return the probe of each server at a site, by name."""
    found = plans()
    servers = [plan.server for plan in found]
    last = last_runs(servers)
    weeks = weeks_of(servers, now=now)
    hours: dict[int, list[dict[str, Any]]] = {}
    for row in lapses_by_hour(servers, since=now - CHARTED):
        hours.setdefault(row["server_id"], []).append(row)
    counts = counts_since(servers, since=now - CHARTED)
    return [
        _overview(
            plan,
            last=last.get(plan.server.pk),
            weeks=[week for week in weeks if week.server_id == plan.server.pk],
            hours=hours.get(plan.server.pk, []),
            counts=counts.get(plan.server.pk, []),
        )
        for plan in found
    ]


def _overview(
    plan: ProbePlan,
    *,
    last: ProbeRun | None,
    weeks: Sequence[ProbeWeek],
    hours: Sequence[dict[str, Any]],
    counts: Counts,
) -> ProbeOverview:
    return ProbeOverview(
        plan=plan,
        last=last,
        weeks=rows_of(week for week in weeks if week.command == LAPSE),
        commands=rows_of(week for week in weeks if week.command != LAPSE),
        charts=[_lapses(plan.server, hours), _processes(plan.server, counts)],
        baseline=baseline_of(counts),
        peaks=peaks_of(counts)[::-1][:PEAKS_SHOWN],
    )


def _lapses(server: PerforceServer, hours: Sequence[dict[str, Any]]) -> Chart:
    """A gap is no zero: an hour in which nothing was measured has no bar."""
    return Chart(
        id=f"probe-{server.pk}",
        title=f"First to last command at {server}, by hour",
        unit=Unit.SECONDS,
        of="Hour (UTC)",
        columns=("Median", "Maximum", "Rounds", "Gaps"),
        points=[
            Point(
                label=f"{row['hour']:%-d %b %H:%M}",
                at=int(row["hour"].timestamp()),
                value=row["median"],
                ceiling=row["maximum"],
                cells=(
                    duration_text(row["median"]),
                    duration_text(row["maximum"]),
                    str(row["rounds"]),
                    str(row["gaps"]),
                ),
            )
            for row in hours
            if row["median"] is not None
        ],
        text=duration_text,
    )


def _processes(server: PerforceServer, counts: Counts) -> Chart:
    by_hour = defaultdict[int, list[int]](list)
    for at, processes in counts:
        by_hour[at // 3600].append(processes)
    return Chart(
        id=f"processes-{server.pk}",
        title=f"Commands that ran at {server}, by hour",
        unit=Unit.NUMBER,
        of="Hour (UTC)",
        columns=("Average", "Maximum"),
        points=[
            Point(
                label=f"{dt.datetime.fromtimestamp(hour * 3600, dt.UTC):%-d %b %H:%M}",
                at=hour * 3600,
                value=sum(found) / len(found),
                ceiling=max(found),
                cells=(f"{sum(found) / len(found):.1f}", str(max(found))),
            )
            for hour, found in by_hour.items()
        ],
        text=lambda number: f"{number:.1f}",
    )
