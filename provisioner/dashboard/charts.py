"""The charts of the overview; each point links to the rows behind it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from django.urls import reverse
from django.utils import timezone

from provisioner.dashboard.history import Ended, ended_in
from provisioner.dashboard.spans import DAY, HOUR, Span
from provisioner.lib.sizes import size_text
from provisioner.lib.times import duration_text
from provisioner.sites.models import AggregateDay, AggregateSpace, CapacityDay, Site
from provisioner.web.charts import Chart, Point, Unit
from provisioner.workspaces.models import WorkspaceOperation
from provisioner.workspaces.ready_times import TimeToReady, ready_in

Days = Mapping[int, Sequence[CapacityDay]]


def charts_of(
    span: Span,
    *,
    sites: Sequence[Site],
    days: Days,
    of_others: Mapping[AggregateSpace, Sequence[AggregateDay]],
) -> list[Chart]:
    """Return all charts of a period, in two queries.

    `days` are those of each site, `of_others` those of their other aggregates.
    """
    names = {site.pk: site for site in sites}
    ended = ended_in(since=span.earliest, until=span.end, by_hour=span.step == HOUR)
    ready = ready_in(since=span.earliest, until=span.end, by_hour=span.step == HOUR)
    return [
        *(_space(span, site, days.get(site.pk, [])) for site in sites),
        *(
            _space_of_other(span, names[other.site_id], other, of_other)
            for other, of_other in of_others.items()
        ),
        _ready(span, ready),
        _clones(span, days),
        _failures(span, ended),
    ]


def _space(span: Span, site: Site, days: Iterable[CapacityDay]) -> Chart:
    known = {day.day: day for day in days if day.used_bytes is not None}

    def point(day: dt.date) -> Point:
        row = known[day]
        before = known.get(day - span.days_before)
        return _of_day(
            day,
            value=row.used_bytes or 0,
            ceiling=row.size_bytes,
            before=None if before is None else before.used_bytes,
            cells=tuple(
                "not known" if number is None else size_text(number)
                for number in (
                    row.used_bytes,
                    row.size_bytes,
                    row.logical_bytes,
                    row.saved_bytes,
                )
            ),
            span=span,
        )

    return Chart(
        id=f"space-{site.pk}",
        title=f"Space of {site}",
        unit=Unit.BYTES,
        columns=("Used", "Size", "Logical", "Saved"),
        points=[point(day) for day in span.days if day in known],
        text=_size,
        is_compared=span.is_compared,
    )


def _space_of_other(
    span: Span, site: Site, other: AggregateSpace, days: Iterable[AggregateDay]
) -> Chart:
    known = {day.day: day for day in days}

    def point(day: dt.date) -> Point:
        row, before = known[day], known.get(day - span.days_before)
        figures = (row.used_bytes, row.size_bytes, row.provisioned_bytes)
        return _of_day(
            day,
            value=row.used_bytes,
            ceiling=row.size_bytes,
            before=None if before is None else before.used_bytes,
            cells=tuple(size_text(number) for number in figures),
            span=span,
        )

    return Chart(
        id=f"space-{site.pk}-{other.pk}",
        title=f"Space of {other.name} at {site}",
        unit=Unit.BYTES,
        columns=("Used", "Size", "Promised"),
        points=[point(day) for day in span.days if day in known],
        text=_size,
        is_compared=span.is_compared,
    )


def _clones(span: Span, days: Days) -> Chart:
    clones: dict[dt.date, int] = {}
    for of_site in days.values():
        for row in of_site:
            clones[row.day] = clones.get(row.day, 0) + row.clones
    return Chart(
        id="clones",
        title="Clones, trash and warm pools included",
        unit=Unit.NUMBER,
        columns=("Clones",),
        points=[
            _of_day(
                day,
                value=clones[day],
                before=clones.get(day - span.days_before),
                cells=(_number(clones[day]),),
                span=span,
            )
            for day in span.days
            if day in clones
        ],
        text=_number,
        is_compared=span.is_compared,
    )


def _ready(span: Span, ready: Mapping[dt.datetime, TimeToReady]) -> Chart:
    def before(moment: dt.datetime) -> float | None:
        earlier = ready.get(moment - span.length) if span.is_compared else None
        return None if earlier is None else earlier.p50_seconds

    return Chart(
        id="ready",
        title="Time to ready",
        unit=Unit.SECONDS,
        columns=("Median", "p95", "Workspaces"),
        points=[
            Point(
                label=span.label(moment),
                at=int(moment.timestamp()),
                value=found.p50_seconds,
                ceiling=found.p95_seconds,
                before=before(moment),
                cells=(
                    duration_text(found.p50_seconds),
                    duration_text(found.p95_seconds),
                    f"{found.number:,}",
                ),
                url=_made(moment, span.step),
            )
            for moment in span.steps
            for found in filter(None, [ready.get(moment)])
        ],
        text=duration_text,
        of=_of(span),
        is_compared=span.is_compared,
        nothing="No workspace became ready in this time.",
    )


def _failures(span: Span, ended: Mapping[dt.datetime, Ended]) -> Chart:
    none = Ended(number=0, failed=0)

    def before(moment: dt.datetime) -> float | None:
        if not span.is_compared:
            return None
        return ended.get(moment - span.length, none).failed

    return Chart(
        id="failed",
        title="Operations that failed, by when they were requested",
        unit=Unit.NUMBER,
        columns=("Failed", "Ended"),
        points=[
            Point(
                label=span.label(moment),
                at=int(moment.timestamp()),
                value=found.failed,
                before=before(moment),
                cells=(f"{found.failed:,}", f"{found.number:,}"),
                url=_operations(moment, span.step, "state=failed"),
            )
            for moment in (span.steps if ended else ())
            for found in [ended.get(moment, none)]
        ],
        text=_number,
        of=_of(span),
        is_bad=True,
        is_compared=span.is_compared,
        nothing="Nothing ended in this time.",
    )


def _of_day(
    day: dt.date,
    *,
    value: float,
    cells: tuple[str, ...],
    span: Span,
    ceiling: float | None = None,
    before: float | None = None,
) -> Point:
    """Return the point of a measured day, with a link to its operations."""
    begin = dt.datetime.combine(day, dt.time(), tzinfo=dt.UTC)
    return Point(
        label=f"{day:%-d %b %Y}",
        at=int(begin.timestamp()),
        value=value,
        ceiling=ceiling,
        before=before if span.is_compared else None,
        cells=cells,
        url=_made(begin, DAY),
    )


def _made(begin: dt.datetime, length: dt.timedelta) -> str:
    kind = WorkspaceOperation.PROVISION
    return _operations(begin, length, f"kind={kind}&state=succeeded")


def _operations(begin: dt.datetime, length: dt.timedelta, query: str) -> str:
    """Return the URL of the list of operations requested in a period.

    Its fields are in the reader's time zone, to the second.
    """
    return _url(begin, begin + length, query, timezone.get_current_timezone())


@lru_cache(maxsize=1000)  # four charts have the same days, and so has the next page
def _url(begin: dt.datetime, end: dt.datetime, query: str, zone: dt.tzinfo) -> str:
    since, until = (
        f"{moment.astimezone(zone):%Y-%m-%dT%H:%M:%S}"
        for moment in (begin, end - dt.timedelta(seconds=1))
    )
    return f"{reverse('operation-list')}?{query}&since={since}&until={until}"


def _of(span: Span) -> str:
    return "Hour (UTC)" if span.step == HOUR else "Day (UTC)"


_number: Callable[[float], str] = "{:,.0f}".format


def _size(number: float) -> str:
    return size_text(int(number))
