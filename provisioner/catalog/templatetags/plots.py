"""Plots as inline SVG: without scripts, in the colors of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from provisioner.catalog.durations import Durations, Phase, Took
from provisioner.catalog.models import BuildParameters
from provisioner.engine.models import Operation
from provisioner.lib.times import duration_text
from provisioner.web.templatetags.cloneyard import ago, exact, state_of

register = template.Library()

# Of the width that a bar has, this much is bar; below this height nobody sees it.
_FILLED = 0.72
_LEAST_PERCENT = 2.0
_WIDEST_PERCENT = 6.0


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A bar; everything in percent of the plot, from its upper left corner."""

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
        phase = [
            f"{self.name} {duration_text(took.seconds)}",
            "failed" if took.is_failed else "",
            f"attempt {took.step.attempt}" if took.step.attempt > 1 else "",
        ]
        change = BuildParameters.of(operation).change
        build = [
            f"{localtime(operation.created_at):%-d %b %Y, %H:%M %Z}",
            f"change {change}" if change else "",
        ]
        return "; ".join(", ".join(filter(None, part)) for part in (phase, build))

    @property
    def drawn(self) -> str:
        across = f'x="{self.x:.2f}%" width="{self.width:.2f}%"'
        return (
            f'<g class="bar{" bar-failed" if self.took.is_failed else ""}">'
            f"<title>{escape(self.title)}</title>"
            f'<rect class="bar-field" {across} height="100%"/>'
            f'<rect class="bar-value" {across} y="{self.y:.2f}%" '
            f'height="{self.height:.2f}%"/>{self._cross}</g>'
        )

    @property
    def _cross(self) -> str:
        if not self.took.is_failed:
            return ""
        middle, line = self.x + self.width / 2, '<path d="M-3-10l6 6m0-6l-6 6"/>'
        return (
            f'<svg class="bar-cross" x="{middle:.2f}%" y="100%" width="1" height="1">'
            f"{line}{line}</svg>"
        )


@dataclass(frozen=True, kw_only=True)
class PhasePlot:
    phase: Phase
    bars: tuple[Bar, ...]

    @property
    def name(self) -> str:
        return self.phase.name.capitalize()

    # A hundred bars on one page: without a template for each.
    @property
    def drawn(self) -> SafeString:
        return SafeString("".join(bar.drawn for bar in self.bars))

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
    """Draw the phases below each other, each scaled to its own longest build."""
    return {
        "span": _span(durations.builds),
        "plots": [plot_of(phase) for phase in durations.phases],
        "rows": _rows(durations),
    }


def _rows(durations: Durations) -> SafeString:
    """Return the table of the same numbers, newest build first."""
    rows = ""
    for index, build in reversed([*enumerate(durations.builds)]):
        url = reverse("operation-detail", args=[build.pk])
        cells = "".join(
            f'<td class="number" data-label="{phase.name.capitalize()}">'
            f"{_text(phase.took[index])}</td>"
            for phase in durations.phases
        )
        rows += (
            f'<tr><td data-label="Build"><a href="{url}">{exact(build.created_at)}</a>'
            f'</td>{cells}<td data-label="Result">{state_of(build)}</td></tr>'
        )
    return SafeString(rows)


def _span(builds: Sequence[Operation]) -> SafeString:
    """Return how many builds there are, and from when to when."""
    if not builds:
        return SafeString()
    first, last = ago(builds[0].created_at), ago(builds[-1].created_at)
    if len(builds) == 1:
        return format_html("One build, {}", first)
    said = "The last {} builds, from {} on the left to {}"
    return format_html(said, len(builds), first, last)


def _text(took: Took | None) -> str:
    if took is None:
        return "–"  # noqa: RUF001
    return duration_text(took.seconds) + (", failed" if took.is_failed else "")


def plot_of(phase: Phase) -> PhasePlot:
    """Return the bars of a phase with their positions."""
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
