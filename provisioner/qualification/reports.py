"""What a run came to, beside another one, and beside what was published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, pstdev

from provisioner.accounts.models import User
from provisioner.lib.comparisons import Comparison, Outcome, compare_repeats
from provisioner.qualification.models import QualificationRun
from provisioner.qualification.profiles import (
    LEVELS,
    PHASES,
    READY,
    Figure,
    Target,
    Unit,
)
from provisioner.qualification.published import PUBLISHED, Published, differences
from provisioner.qualification.queries import (
    batches_left,
    phases_of,
    runs_visible_to,
    values_of,
    workspaces_of,
)
from provisioner.sandboxes.models import Sandbox
from provisioner.workspaces.models import Workspace

OTHERS_SHOWN = 5
COMPARED_AT_MOST = 200
_OPPOSITE = {Outcome.BETTER: Outcome.WORSE, Outcome.WORSE: Outcome.BETTER}


def figure_text(value: float | None, unit: Unit) -> str:
    """Return a figure for people, "" for none."""
    if value is None:
        return ""
    number = f"{value:,.3f}" if unit == Unit.SECONDS else f"{value:,.1f}"
    if unit == Unit.NUMBER or value >= 1000:
        number = f"{value:,.0f}"
    return f"{number} {unit}".strip()


@dataclass(frozen=True, kw_only=True)
class FigureLine:
    """A figure of a run: of each repeat in order, with average and deviation."""

    figure: Figure
    values: list[float | None]

    @property
    def cells(self) -> list[str]:
        return [figure_text(value, self.figure.unit) for value in self.values]

    @property
    def known(self) -> list[float]:
        return [value for value in self.values if value is not None]

    @property
    def average(self) -> float | None:
        return fmean(self.known) if self.known else None

    @property
    def average_text(self) -> str:
        return figure_text(self.average, self.figure.unit)

    @property
    def deviation_text(self) -> str:
        """The standard deviation as a share of the average."""
        average = self.average
        if not average or len(self.known) < 2:
            return ""
        return f"{100 * pstdev(self.known) / average:.1f} %"


def figure_lines(run: QualificationRun) -> list[FigureLine]:
    """Return the figures that were measured, in the order of the profile."""
    found = values_of(run)
    repeats = range(1, run.repeats + 1)
    return [
        FigureLine(
            figure=figure,
            values=[found[figure.code].get(repeat) for repeat in repeats],
        )
        for figure in run.described.figures
        if figure.code in found
    ]


@dataclass(frozen=True, kw_only=True)
class PhaseLine:
    """A phase of so many workspaces at once: `figures` of all repeats, in seconds."""

    at_once: int
    phase: str
    title: str
    figures: dict[str, float]

    @property
    def is_whole(self) -> bool:
        return self.phase == READY

    @property
    def number(self) -> str:
        """How many workspaces were measured."""
        return f"{self.figures['number']:,}"

    @property
    def cells(self) -> list[tuple[str, str]]:
        """Names and texts of the figures."""
        return [
            (title, figure_text(self.figures[name], Unit.SECONDS))
            for name, title in PHASE_FIGURES.items()
        ]


PHASE_FIGURES = {
    "average": "Average",
    "median": "Median",
    "p95": "p95",
    "longest": "Longest",
}


def phase_lines(run: QualificationRun) -> list[PhaseLine]:
    """Return the phases of workspaces that were measured; none of other profiles."""
    if run.described.target != Target.TEMPLATE:
        return []
    found = phases_of(run)
    return [
        PhaseLine(at_once=at_once, phase=phase, title=title, figures=figures)
        for at_once in LEVELS
        for phase, title in PHASES.items()
        if (figures := found.get((at_once, phase)))
    ]


def waiting_text(run: QualificationRun) -> str:
    """Return what a run waits for, as a sentence; "" if it does not wait."""
    if run.state != QualificationRun.State.WAITING:
        return ""
    if run.sandbox is not None:
        state = run.sandbox.get_state_display().lower()
        return f"It begins when the sandbox {run.sandbox.name} is ready. Now: {state}."
    left = next(batches_left(run), None)
    states = Counter(workspaces_of(run).values_list("state", flat=True))
    staying = states.total() - states[Workspace.State.RETIRED]
    if left is None:
        return f"Every workspace was timed. {staying} are being removed."
    at_once, repeat = left
    return (
        f"{at_once} at once, repeat {repeat} of {run.repeats}: "
        f"{states[Workspace.State.READY]} of {at_once} ready, {staying} there."
    )


@dataclass(frozen=True, kw_only=True)
class RunMeasure:
    """A figure of two runs compared. A positive share is better, whatever the unit."""

    figure: Figure
    comparison: Comparison

    @property
    def share_text(self) -> str:
        return _percent(self.comparison.share)

    @property
    def interval_text(self) -> str:
        if self.comparison.interval is None:
            return "not known"
        return " to ".join(map(_percent, self.comparison.interval))

    @property
    def before_text(self) -> str:
        return figure_text(self.comparison.before.average, self.figure.unit)

    @property
    def after_text(self) -> str:
        return figure_text(self.comparison.after.average, self.figure.unit)


def compared(first: QualificationRun, second: QualificationRun) -> list[RunMeasure]:
    """Compare the figures that both runs of a profile have."""
    before, after = values_of(first), values_of(second)
    return [
        RunMeasure(
            figure=figure,
            comparison=_compared(figure, before[figure.code], after[figure.code]),
        )
        for figure in first.described.figures
        if figure.is_compared and figure.code in before and figure.code in after
    ]


def _compared(
    figure: Figure, before: Mapping[int, float], after: Mapping[int, float]
) -> Comparison:
    comparison = compare_repeats(list(before.values()), list(after.values()))
    if not figure.more_is_better:
        return comparison
    share, interval = comparison.share, comparison.interval
    return replace(
        comparison,
        share=None if share is None else -share,
        interval=None if interval is None else (-interval[1], -interval[0]),
        outcome=_OPPOSITE.get(comparison.outcome, comparison.outcome),
    )


@dataclass(frozen=True, kw_only=True)
class OtherRun:
    """A run that another one can be compared with; `is_alike`: measured alike."""

    run: QualificationRun
    is_alike: bool


def comparisons_of(user: User, run: QualificationRun) -> list[OtherRun]:
    """Return the runs that a run can be compared with: those measured alike first.

    Of each kind those of the same server come first, then the newest.
    """
    if run.state != QualificationRun.State.DONE:
        return []
    others = runs_visible_to(user).filter(
        profile=run.profile, state=QualificationRun.State.DONE
    )
    found = [
        OtherRun(run=other, is_alike=is_alike(run, other))
        for other in others.exclude(pk=run.pk).order_by("-pk")[:COMPARED_AT_MOST]
    ]
    server = run.perforce_server_id
    found.sort(
        key=lambda each: (
            not each.is_alike,
            each.run.perforce_server_id != server,
            -each.run.pk,
        )
    )
    return found[:OTHERS_SHOWN]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A run in a sandbox, and the one to compare it with, if there is any."""

    run: QualificationRun
    other: QualificationRun | None


def measurements_of(user: User, sandbox: Sandbox) -> list[Measurement]:
    """Return the runs in a sandbox, the newest first."""
    runs = runs_visible_to(user).filter(sandbox=sandbox).order_by("-pk")
    return [
        Measurement(run=run, other=_counterpart(comparisons_of(user, run)))
        for run in runs[:OTHERS_SHOWN]
    ]


def _counterpart(others: list[OtherRun]) -> QualificationRun | None:
    return next((each.run for each in others if each.is_alike), None)


def is_alike(first: QualificationRun, second: QualificationRun) -> bool:
    """Return whether two runs did the same; what they measured may differ."""
    return first.is_cold == second.is_cold and all(
        getattr(second, name) == value
        for name, value in first.parameters
        if name != "repeats"
    )


def unlike(first: QualificationRun, second: QualificationRun) -> list[str]:
    """Return what two runs were measured differently by, as sentences."""
    said = []
    for name, value in first.parameters:
        other = getattr(second, name)
        if other != value and name != "repeats":
            said.append(f"{name}: {value:,} and {other:,}.")
    if first.is_cold != second.is_cold:
        said.append("One was measured with cold caches, the other with warm ones.")
    if first.release != second.release:
        said.append(f"{first.release or 'unknown'} and {second.release or 'unknown'}.")
    return said


@dataclass(frozen=True, kw_only=True)
class PublishedLine:
    """A published figure beside that of a run; `run_text` is "" without one."""

    published: Published
    title: str
    published_text: str
    run_text: str


def published_beside(run: QualificationRun) -> list[PublishedLine]:
    """Return what was published of a run's profile, beside its own figures."""
    lines = {line.figure.code: line for line in figure_lines(run)}
    return list(_beside(run, lines))


def _beside(
    run: QualificationRun, lines: Mapping[str, FigureLine]
) -> Iterator[PublishedLine]:
    for published in PUBLISHED:
        figure = run.described.figure(published.figure)
        if published.profile != run.profile or figure is None:
            continue
        low, high = (
            figure_text(value, figure.unit) for value in (published.low, published.high)
        )
        own = lines.get(figure.code)
        yield PublishedLine(
            published=published,
            title=figure.title,
            published_text=low if low == high else f"{low} to {high}",
            run_text=own.average_text if own else "",
        )


def not_comparable(run: QualificationRun) -> list[str]:
    """Return why a run cannot be compared with what was published."""
    children = run.children * run.hosts
    return differences(
        profile=run.profile,
        files=run.files,
        children=children,
        browses=children * run.rounds,
        is_cold=run.is_cold,
    )


def csv_lines(run: QualificationRun) -> Iterator[str]:
    """Yield the figures of a run as CSV: one line for each repeat and figure."""
    yield "run,profile,repeat,figure,unit,value\r\n"
    for line in figure_lines(run):
        for repeat, value in enumerate(line.values, start=1):
            if value is not None:
                yield (
                    f"{run.pk},{run.profile},{repeat},{line.figure.code},"
                    f"{line.figure.unit},{value:.6g}\r\n"
                )


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.1f} %"
