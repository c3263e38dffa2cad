"""Plots as inline SVG: without scripts, in the colours of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import template
from django.utils import dateformat
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from provisioner.catalog.durations import Durations, Phase, Took
from provisioner.engine.models import Operation
from provisioner.lib.times import duration_text

register = template.Library()

# Of the width that a bar has, this much is bar; below this height nobody sees it.
_FILLED = 0.72
_LEAST_PERCENT = 2.0
_WIDEST_PERCENT = 6.0


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A bar; everything in percent of the plot, from its upper left corner.

    What a page repeats for each of 160 bars is put together here: a template would
    take as long for these as for all else.
    """

    took: Took
    name: str
    x: float
    y: float
    width: float
    height: float

    @property
    def title(self) -> str:
        """Say "Build 12 s, failed, attempt 2; 3 Jun 2026, 14:02 UTC, change 712"."""
        took, operation = self.took, self.took.operation
        began = localtime(operation.created_at)
        phase = [
            f"{self.name} {duration_text(took.seconds)}",
            "failed" if took.is_failed else "",
            f"attempt {took.step.attempt}" if took.step.attempt > 1 else "",
        ]
        change = operation.parameters.get("change")
        build = [
            dateformat.format(began, "j M Y, H:i e"),
            f"change {change}" if change else "",
        ]
        return "; ".join(", ".join(filter(None, part)) for part in (phase, build))

    @property
    def across(self) -> SafeString:
        """The attributes of its place from left to right."""
        return format_html('x="{}" width="{}"', _percent(self.x), _percent(self.width))

    @property
    def upright(self) -> SafeString:
        """The attributes of its place from top to bottom."""
        return format_html(
            'y="{}" height="{}"', _percent(self.y), _percent(self.height)
        )

    @property
    def middle(self) -> str:
        return _percent(self.x + self.width / 2)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A build in the table of numbers; each cell, "" if not known, with its column."""

    build: Operation
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class PhasePlot:
    phase: Phase
    bars: tuple[Bar, ...]

    @property
    def name(self) -> str:
        return self.phase.name.capitalize()

    @property
    def summary(self) -> str:
        """What the chart shows, in a sentence."""
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
            Row(
                build=build,
                cells=tuple(
                    (phase.name.capitalize(), _text(phase.took[index]))
                    for phase in durations.phases
                ),
            )
            for index, build in reversed([*enumerate(durations.builds)])
        ],
    }


def _percent(number: float) -> str:
    return f"{number:.2f}%"


def _text(took: Took | None) -> str:
    if took is None:
        return ""
    return duration_text(took.seconds) + (", failed" if took.is_failed else "")


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
                name=phase.name.capitalize(),
                x=index * slot + slot * (1 - _FILLED) / 2,
                y=100 - height,
                width=slot * _FILLED,
                height=height,
            )
        )
    return PhasePlot(phase=phase, bars=tuple(bars))
