"""Plots as inline SVG: without scripts, in the colours of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import template

from provisioner.catalog.durations import Durations, Phase, Took
from provisioner.lib.times import duration_text

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
