"""Plots as inline SVG: without scripts, in the colours of the page."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from django import template
from django.utils.safestring import SafeString

from provisioner.catalog.durations import Durations, Phase, Took
from provisioner.dashboard.history import ClonesOnADay, EndedOnADay
from provisioner.dashboard.queries import Space
from provisioner.lib.sizes import size_text
from provisioner.lib.times import duration_text
from provisioner.web.templatetags.cloneyard import size
from provisioner.workspaces.ready_times import DayToReady

register = template.Library()

# Of the width that a bar has, this much is bar; below this height nobody sees it.
_FILLED = 0.72
_LEAST_PERCENT = 2.0
_WIDEST_PERCENT = 6.0


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A bar; everything in percent of the plot, from its upper left corner."""

    took: Took
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass(frozen=True, kw_only=True)
class PhasePlot:
    phase: Phase
    bars: tuple[Bar, ...]

    @property
    def summary(self) -> str:
        """What the picture shows, in a sentence."""
        phase = self.phase
        number = len(phase.known)
        said = (
            f"{phase.name}: {number} {'build' if number == 1 else 'builds'}, from "
            f"{duration_text(phase.shortest_seconds)} to "
            f"{duration_text(phase.longest_seconds)}, the last "
            f"{duration_text(phase.last.seconds)}"
        )
        return said + (f", {phase.failed_count} failed" if phase.failed_count else "")


@register.inclusion_tag("catalog/_durations.html")
def durations_plot(durations: Durations) -> dict[str, Any]:
    """Draw the phases below each other, each against its own longest."""
    return {
        "durations": durations,
        "plots": [plot_of(phase) for phase in durations.phases],
        "rows": [
            (build, [phase.took[index] for phase in durations.phases])
            for index, build in enumerate(durations.builds)
        ][::-1],
    }


def plot_of(phase: Phase) -> PhasePlot:
    """Return where the bars of a phase are."""
    slot = min(100 / len(phase.took), _WIDEST_PERCENT)
    longest = phase.longest_seconds
    bars = []
    for index, took in enumerate(phase.took):
        if took is None:
            continue
        share = took.seconds / longest if longest > 0 else 0.0
        height = max(share * 100, _LEAST_PERCENT)
        bars.append(
            Bar(
                took=took,
                x=index * slot + slot * (1 - _FILLED) / 2,
                y=100 - height,
                width=slot * _FILLED,
                height=height,
            )
        )
    return PhasePlot(phase=phase, bars=tuple(bars))


@dataclass(frozen=True, kw_only=True)
class OnADay:
    """What a day's bar shows: a number, one behind it, and both in words."""

    day: dt.date
    number: float
    behind: float
    words: str
    cells: tuple[str | SafeString, ...]


@register.inclusion_tag("components/_bars_plot.html")
def space_plot(space: Space) -> dict[str, Any]:
    """Draw what a site's aggregate held each day, against what it can hold."""
    days = [
        OnADay(
            day=day.day,
            number=day.used_bytes or 0,
            behind=day.size_bytes or 0,
            words=" of ".join(
                size_text(number or 0) for number in (day.used_bytes, day.size_bytes)
            ),
            cells=(
                size(day.used_bytes or 0),
                size(day.size_bytes or 0),
                "not known" if day.logical_bytes is None else size(day.logical_bytes),
                "not known" if day.saved_bytes is None else size(day.saved_bytes),
            ),
        )
        for day in space.days
    ]
    return _bars(
        days,
        id=f"space-days-{space.capacity.site_id}",
        title="Space over time",
        caption="Used each day, and what there is",
        columns=("Used", "There is", "Logical", "Saved"),
        text=size_text,
    )


@register.inclusion_tag("components/_bars_plot.html")
def ready_plot(days: list[DayToReady]) -> dict[str, Any]:
    """Draw how long each day's workspaces took, half of them and 95 %."""
    return _bars(
        [
            OnADay(
                day=day.day,
                number=day.p50_seconds,
                behind=day.p95_seconds,
                words=f"half in {duration_text(day.p50_seconds)}, 95 % within "
                f"{duration_text(day.p95_seconds)}, of {day.number:,}",
                cells=(
                    f"{day.number:,}",
                    duration_text(day.p50_seconds),
                    duration_text(day.p95_seconds),
                ),
            )
            for day in days
        ],
        id="ready-days",
        title="Time to ready each day",
        caption="Time to ready: median and p95",
        columns=("Workspaces", "Median", "p95"),
        text=duration_text,
    )


@register.inclusion_tag("components/_bars_plot.html")
def clones_plot(days: list[ClonesOnADay]) -> dict[str, Any]:
    """Draw how many clones there were each day."""
    return _bars(
        [
            OnADay(
                day=day.day,
                number=day.clones,
                behind=0,
                words=f"{day.clones:,}",
                cells=(f"{day.clones:,}",),
            )
            for day in days
        ],
        id="clones-days",
        title="Clones over time",
        caption="Clones each day, trash and warm pools included",
        columns=("Clones",),
        text="{:,}".format,
    )


@register.inclusion_tag("components/_bars_plot.html")
def failures_plot(days: list[EndedOnADay]) -> dict[str, Any]:
    """Draw how many operations failed each day."""
    return {
        "plot": _bars(
            [
                OnADay(
                    day=day.day,
                    number=day.failed,
                    behind=0,
                    words=f"{day.failed:,} of {day.ended:,} failed",
                    cells=(f"{day.failed:,}", f"{day.ended:,}"),
                )
                for day in days
            ],
            id="failures-days",
            title="Failures per day",
            caption="Operations that failed",
            columns=("Failed", "Ended"),
            text="{:,}".format,
        )["plot"]
        | {"is_bad": True}
    }


def _bars(
    days: Sequence[OnADay],
    *,
    id: str,
    title: str,
    caption: str,
    columns: tuple[str, ...],
    text: Callable[[Any], str],
) -> dict[str, Any]:
    """Return a plot of days, the oldest first, against the highest of all."""
    highest = max(max(day.number, day.behind) for day in days) or 1
    last = days[-1]
    number = f"{len(days)} {'day' if len(days) == 1 else 'days'}"
    plot = {
        "id": id,
        "title": title,
        "caption": caption,
        "top": text(highest),
        "summary": f"{caption}: {number}; on the last, {last.words}",
        "bars": _drawn(days, highest),
        "columns": columns,
        "rows": _rows(days, columns),
        "first": days[0].day,
        "last": last.day,
    }
    return {"plot": plot}


# Hundreds of bars and rows on one page: without a template for each, in few bytes, and
# escaped by what is fastest at it.
def _drawn(days: Sequence[OnADay], highest: float) -> SafeString:
    """Return the bars, in a plot of 100 by 100."""
    slot = min(100 / len(days), _WIDEST_PERCENT)
    bars = []
    for index, day in enumerate(days):
        x = index * slot + slot * (1 - _FILLED) / 2
        behind, value = (_height(n, highest) for n in (day.behind, day.number))
        bars.append(
            f'<g class="bar"><title>{_date(day)}: {escape(day.words)}</title>'
            f'<path class="bar-field" d="{_path(x, slot, 100.0)}"/>'
            f'<path class="bar-half" d="{_path(x, slot, behind)}"/>'
            f'<path class="bar-value" d="{_path(x, slot, value)}"/></g>'
        )
    return SafeString("".join(bars))


def _date(day: OnADay) -> str:
    return f"{day.day:%-d %b %Y}"


def _path(x: float, slot: float, height: float) -> str:
    if not height:
        return ""
    width = f"{slot * _FILLED:.4g}"
    return f"M{x:.4g} {100 - height:.4g}h{width}v{height:.4g}h-{width}z"


def _rows(days: Sequence[OnADay], columns: tuple[str, ...]) -> SafeString:
    """Return the days as rows of a table, the newest first."""
    labels = [f'<td data-label="{escape(column)}">' for column in columns]
    rows = []
    for day in reversed(days):
        cells = "".join(
            f"{label}{cell if isinstance(cell, SafeString) else escape(cell)}</td>"
            for label, cell in zip(labels, day.cells, strict=True)
        )
        rows.append(
            f'<tr><th class="unbroken" scope="row">{_date(day)}</th>{cells}</tr>'
        )
    return SafeString("".join(rows))


def _height(number: float, highest: float) -> float:
    return max(100 * number / highest, _LEAST_PERCENT) if number else 0.0
