"""What two periods of a server are compared by, and the report on it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.lib import clocks
from provisioner.lib.comparisons import Comparison, Sample, compare
from provisioner.lib.refusals import InvalidRequest
from provisioner.probes.models import Moment, ProbeRun, ProbeTime, ProcessCount
from provisioner.probes.queries import LAPSE
from provisioner.server_log.queries import command_hours, commands_between
from provisioner.sites.models import PerforceServer

USUAL_DAYS = 14
MOST_DAYS = 180
DAY = dt.timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Period:
    """From `begin` until just before `end`."""

    begin: dt.datetime
    end: dt.datetime


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where measurements come from.

    `samples` returns those of a server in a period, by what was measured; each value is
    in `unit`, and lower is better. `work` returns how much was done there a day, in the
    words of `work_unit`; None: not known. `begins` says how to have some, and how long.
    """

    code: str
    title: str
    unit: str
    samples: Callable[[PerforceServer, Period], dict[str, Sample]]
    work: Callable[[PerforceServer, Period], float | None]
    work_unit: str
    begins: str


def _samples_of_probe(server: PerforceServer, period: Period) -> dict[str, Sample]:
    runs = ProbeRun.objects.filter(
        server=server, at__gte=period.begin, at__lt=period.end
    )
    lapses = runs.order_by("at").values_list("at", "lapse_seconds")
    times = ProbeTime.objects.filter(run__in=runs).order_by("command", "run__at")
    found: dict[str, list[tuple[dt.datetime, float]]] = {}
    for name, at, seconds in (
        *((LAPSE, at, seconds) for at, seconds in lapses),
        *times.values_list("command", "run__at", "seconds"),
    ):
        if seconds is not None:
            found.setdefault(name, []).append((at, seconds))
    return dict(found)


def _samples_of_processes(server: PerforceServer, period: Period) -> dict[str, Sample]:
    counts = ProcessCount.objects.filter(
        server=server, at__gte=period.begin, at__lt=period.end
    )
    sample = list(counts.order_by("at").values_list("at", "processes"))
    return {"Running commands": sample} if sample else {}


def changes_a_day(server: PerforceServer, period: Period) -> float | None:
    """Return how many changes a day were submitted, None if less than a day was seen.

    As numbers of changes grow: pending ones, too.
    """
    runs = ProbeRun.objects.filter(
        server=server, at__gte=period.begin, at__lt=period.end, change__isnull=False
    ).order_by("at")
    first, last = runs.first(), runs.last()
    if first is None or last is None or last.at - first.at < DAY:
        return None
    assert first.change is not None
    assert last.change is not None
    return (last.change - first.change) / ((last.at - first.at) / DAY)


def _samples_of_log(server: PerforceServer, period: Period) -> dict[str, Sample]:
    """Return what a command took on average in each hour, of those that took most."""
    found: dict[str, list[tuple[dt.datetime, float]]] = {}
    for name, at, lapse_ms, commands in command_hours(
        server, since=period.begin, until=period.end
    ):
        found.setdefault(name, []).append((at, lapse_ms / 1000 / commands))
    return dict(found)


def commands_a_day(server: PerforceServer, period: Period) -> float | None:
    """Return how many commands a day began, None if the log tells of none."""
    commands = commands_between(server, since=period.begin, until=period.end)
    days = max((period.end - period.begin) / DAY, 1 / 24)
    return commands / days if commands else None


SOURCES = (
    Source(
        code="probe",
        title="What commands of the probe took",
        unit="s",
        samples=_samples_of_probe,
        work=changes_a_day,
        work_unit="changes a day",
        begins="Probes begin with the first host worker of the server, and are kept "
        "for 13 months.",
    ),
    Source(
        code="processes",
        title="How many commands ran at a time",
        unit="",
        samples=_samples_of_processes,
        work=changes_a_day,
        work_unit="changes a day",
        begins="They are counted every five minutes where p4 monitor can be read, and "
        "kept for 13 months.",
    ),
    Source(
        code="log",
        title="What commands of the log took, on average of each hour",
        unit="s",
        samples=_samples_of_log,
        work=commands_a_day,
        work_unit="commands a day",
        begins="Read the log of the server, or upload it. Its sums by hour are kept "
        "for 400 days.",
    ),
)
"""Another one is a line here, and two functions."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One line of a report."""

    name: str
    comparison: Comparison

    @property
    def share_text(self) -> str:
        return _percent(self.comparison.share)

    @property
    def adjusted_text(self) -> str:
        return _percent(self.comparison.adjusted)

    @property
    def interval_text(self) -> str:
        if self.comparison.interval is None:
            return "not known"
        return " to ".join(map(_percent, self.comparison.interval))


@dataclass(frozen=True, kw_only=True)
class Report:
    """Two periods of a server compared. `work` is a day's, before and after."""

    server: PerforceServer
    moment: Moment | None
    source: Source
    before: Period
    after: Period
    work: tuple[float, float] | None
    measures: list[Measure]

    @property
    def title(self) -> str:
        """The subject of a mail with it."""
        what = f": {self.moment.label}" if self.moment is not None else ""
        return f"Did it help? {self.server.name}{what}"

    @property
    def work_text(self) -> str:
        if self.work is None:
            return "How much work was done is not known for both periods."
        before, after = self.work
        unit = self.source.work_unit
        return f"Work: {before:,.0f} {unit} before, {after:,.0f} after."


def compare_periods(
    *,
    by: User,
    what: str = SOURCES[0].code,
    server: PerforceServer | None = None,
    moment: Moment | None = None,
    days: int | None = None,
    before_since: dt.datetime | None = None,
    before_until: dt.datetime | None = None,
    after_since: dt.datetime | None = None,
    after_until: dt.datetime | None = None,
) -> Report:
    """Compare so many days before and after a moment, or two periods of a server.

    Raises: NotAllowed, InvalidRequest (no server, a period that ends before it begins,
    periods that overlap).
    """
    permissions.require(permissions.can_administer(by))
    days = USUAL_DAYS if days is None else days
    if not 1 <= days <= MOST_DAYS:
        raise InvalidRequest.at("days", f"Choose 1 to {MOST_DAYS} days.")
    span, now = days * DAY, clocks.database_now()
    middle = moment.at if moment is not None else None
    before = Period(
        begin=before_since or _given(middle, "before_since") - span,
        end=before_until or _given(middle, "before_until"),
    )
    after = Period(
        begin=after_since or _given(middle, "after_since"),
        end=after_until or min(_given(middle, "after_until") + span, now),
    )
    if moment is not None and server is not None and server != moment.server:
        raise InvalidRequest.at(
            "server",
            f"{moment.label} was marked at {moment.server}. Leave the server out, or "
            "give four times instead of the moment.",
        )
    server = server or (moment.server if moment is not None else None)
    if server is None:
        raise InvalidRequest.at("server", "Choose a server, or a moment.")
    _check(before, after, now=now)
    return _report(server, moment, what, before, after)


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.1f} %"


def _given(moment: dt.datetime | None, field: str) -> dt.datetime:
    if moment is None:
        raise InvalidRequest.at(field, "Choose a moment, or give this time.")
    return moment


def _check(before: Period, after: Period, *, now: dt.datetime) -> None:
    if before.end <= before.begin:
        raise InvalidRequest.at(
            "before_until", "The first period ends before it begins."
        )
    if after.begin >= now:
        raise InvalidRequest.at("after_since", "The second period has not begun yet.")
    if after.end <= after.begin:
        raise InvalidRequest.at(
            "after_until", "The second period ends before it begins."
        )
    if after.begin < before.end:
        raise InvalidRequest.at(
            "after_since", "The periods overlap. Begin the second after the first."
        )


def _report(
    server: PerforceServer,
    moment: Moment | None,
    what: str,
    before: Period,
    after: Period,
) -> Report:
    source = next((one for one in SOURCES if one.code == what), None)
    if source is None:
        raise InvalidRequest.at(
            "what", f"Choose one of {', '.join(one.code for one in SOURCES)}."
        )
    first, second = source.samples(server, before), source.samples(server, after)
    done = (source.work(server, before), source.work(server, after))
    work = None if done[0] is None or done[1] is None else (done[0], done[1])
    return Report(
        server=server,
        moment=moment,
        source=source,
        before=before,
        after=after,
        work=work,
        measures=[
            Measure(
                name=name,
                comparison=compare(
                    first.get(name, []), second.get(name, []), work=work
                ),
            )
            for name in dict.fromkeys([*first, *second])
        ],
    )
