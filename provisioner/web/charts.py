"""One component for every chart: bars or dots, links to their rows, what was before.

A chart is an SVG and a table with the same numbers. Scripts draw it from the rows of
the table, with axes and a cursor (`static/js/charts.js`): `data-point` has the numbers
of a point in the order of its fields, - for one that is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from html import escape
from itertools import pairwise

from django.utils.safestring import SafeString

# Of the width that a bar has, this much is bar; below this height nobody sees it.
_FILLED = 0.72
_LEAST_PERCENT = 1.0
_WIDEST_PERCENT = 6.0
# The foot of a chart of dots: its height grows with the order of magnitude.
_LEAST_DOT = 0.01
# What a bar is made of, from back to front.
_KINDS = ("chart-stretch", "bar-half", "bar-before", "bar-value", "bar-part")


class Unit(StrEnum):
    """The unit of an axis; scripts choose its ticks by it."""

    NUMBER = "number"
    BYTES = "bytes"
    SECONDS = "seconds"


@dataclass(frozen=True, kw_only=True)
class Point:
    """A bar, and its row in the table.

    `at` is its start, in seconds since 1970; `ceiling` is the limit it is drawn
    against, `before` its value in the previous period, and `part` how much of the value
    is of the chart's `part`. `cells` are the texts of the columns. `url` leads to the
    rows that it counts.
    """

    label: str
    at: int
    value: float
    cells: tuple[str, ...]
    ceiling: float | None = None
    before: float | None = None
    part: float | None = None
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """A period that is marked in a chart, in seconds since 1970, and what it was."""

    begin: int
    end: int
    text: str
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart over time, oldest point first.

    The first of `columns` names the bars, the second the ceiling if there is one.
    `text` formats a value for people. `part` names what has a color of its own.
    `stretches` are marked. With `is_dots` each point is a dot at its time, on a
    logarithmic scale from 0.01 up, with lines at `lines`.
    """

    id: str
    title: str
    unit: Unit
    columns: tuple[str, ...]
    points: Sequence[Point]
    text: Callable[[float], str]
    of: str = "Day (UTC)"
    is_bad: bool = False
    is_compared: bool = False
    part: str = ""
    stretches: Sequence[Stretch] = ()
    is_dots: bool = False
    lines: tuple[float, ...] = ()
    nothing: str = "Nothing was measured in this time."

    @property
    def has_ceiling(self) -> bool:
        return any(point.ceiling is not None for point in self.points)

    @property
    def top(self) -> str:
        """The highest value: the scale of the chart."""
        return self.text(self._highest)

    @property
    def summary(self) -> str:
        """What the chart shows, in a sentence."""
        last = self.points[-1]
        values = [point.value for point in self.points]
        return (
            f"{self.columns[0]} from {self.text(min(values))} to "
            f"{self.text(max(values))}; {last.label}: {self.text(last.value)}."
        )

    @cached_property
    def _highest(self) -> float:
        numbers = (
            number or 0.0
            for point in self.points
            for number in (point.value, point.ceiling, point.before)
        )
        return max(*numbers, *self.lines, 0.0) or 1.0

    # Hundreds of bars and rows on one page: a path for all bars of a kind, and no
    # template for each row. The table has their names and their links.
    @property
    def drawn(self) -> SafeString:
        """The bars or dots, scaled to a picture of 100 by 100."""
        if self.is_dots:
            return self._dots
        slot = min(100 / len(self.points), _WIDEST_PERCENT)
        bars: dict[str, list[str]] = {kind: [] for kind in _KINDS}
        for index, point in enumerate(self.points):
            x = index * slot + slot * (1 - _FILLED) / 2
            for kind, height in zip(_KINDS, self._heights(point), strict=True):
                if height:
                    bars[kind].append(_path(x, slot, height))
        return SafeString(
            "".join(
                f'<path class="{kind}" d="{"".join(paths)}"/>'
                for kind, paths in bars.items()
                if paths
            )
        )

    def _heights(self, point: Point) -> tuple[float, ...]:
        """Return how high the bars of a point are, in the order of the kinds."""
        numbers = (point.ceiling, point.before, point.value, point.part)
        heights = (_height(number or 0.0, self._highest) for number in numbers)
        return (100.0 if self._is_marked(point) else 0.0, *heights)

    @property
    def _dots(self) -> SafeString:
        times = [point.at for point in self.points]
        times += [at for each in self.stretches for at in (each.begin, each.end)]
        begin, whole = min(times), max(max(times) - min(times), 1)

        def x(at: int) -> float:
            return 100 * (at - begin) / whole

        drawn = [
            f'<path class="chart-stretch" d="M{x(each.begin):.4g} 0V100'
            f'H{max(x(each.end), x(each.begin) + 0.3):.4g}V0z"/>'
            for each in self.stretches
        ]
        drawn += [
            f'<path class="chart-line" d="M0 {self._dot_y(line):.4g}H100"/>'
            for line in self.lines
        ]
        for kind, is_part in (("dot", False), ("dot dot-part", True)):
            dots = "".join(
                f"M{x(point.at):.4g} {self._dot_y(point.value):.4g}h0"
                for point in self.points
                if (point.part is not None) == is_part
            )
            drawn.append(f'<path class="{kind}" d="{dots}"/>' if dots else "")
        return SafeString("".join(drawn))

    def _dot_y(self, value: float) -> float:
        orders = math.log10(max(self._highest, 10 * _LEAST_DOT) / _LEAST_DOT)
        return 100 - 98 * math.log10(max(value, _LEAST_DOT) / _LEAST_DOT) / orders

    @cached_property
    def _slot_seconds(self) -> int:
        """How long a bar lasts."""
        times = [point.at for point in self.points]
        gaps = (b - a for a, b in pairwise(times))
        return min((gap for gap in gaps if gap > 0), default=3600)

    def _is_marked(self, point: Point) -> bool:
        end = point.at + self._slot_seconds
        return any(e.begin < end and point.at < e.end for e in self.stretches)

    @property
    def headings(self) -> tuple[str, ...]:
        return (*self.columns, "Period before") if self.is_compared else self.columns

    @property
    def rows(self) -> SafeString:
        """The points as rows of a table, newest first."""
        return SafeString("".join(self._row(point) for point in reversed(self.points)))

    def _row(self, point: Point) -> str:
        before = "–" if point.before is None else self.text(point.before)  # noqa: RUF001
        cells = (*point.cells, before) if self.is_compared else point.cells
        numbers = (point.at, point.value, point.ceiling, point.before, point.part)
        data = " ".join("-" if n is None else _plain(n) for n in numbers)
        label = escape(point.label)
        if point.url:
            label = f'<a href="{escape(point.url)}">{label}</a>'
        texts = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        return f'<tr data-point="{data}"><th scope="row">{label}</th>{texts}</tr>'


def _plain(number: float) -> str:
    """Return a number with up to three decimals, without an exponent."""
    return f"{number:.3f}".rstrip("0").rstrip(".")


def _path(x: float, slot: float, height: float) -> str:
    width = f"{slot * _FILLED:.4g}"
    return f"M{x:.4g} {100 - height:.4g}h{width}v{height:.4g}h-{width}z"


def _height(number: float, highest: float) -> float:
    return max(100 * number / highest, _LEAST_PERCENT) if number else 0.0
