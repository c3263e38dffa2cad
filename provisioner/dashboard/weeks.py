"""What changed since last week: the last seven days beside the seven before."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Q

from provisioner.catalog.models import TemplateOperation
from provisioner.engine.models import Operation
from provisioner.lib.sizes import size_text
from provisioner.lib.times import duration_text
from provisioner.sites.models import CapacityDay
from provisioner.workspaces.models import WorkspaceOperation
from provisioner.workspaces.ready_times import Waits, waits_between

WEEK = dt.timedelta(days=7)
_COUNTED = {
    "made": Q(kind=WorkspaceOperation.PROVISION, state=Operation.State.SUCCEEDED),
    "retired": Q(kind=WorkspaceOperation.RETIRE, state=Operation.State.SUCCEEDED),
    "builds": Q(kind=TemplateOperation.BUILD, state=Operation.State.SUCCEEDED),
    "failed": Q(state=Operation.State.FAILED),
}


@dataclass(frozen=True, kw_only=True)
class Change:
    """A number of this week and the week before; None: not measured.

    `query` leads to the operations behind it, without the days.
    """

    title: str
    now: float | None
    before: float | None
    text: Callable[[float], str] = "{:,.0f}".format
    query: str = ""

    @property
    def now_text(self) -> str:
        return "not measured" if self.now is None else self.text(self.now)

    @property
    def before_text(self) -> str:
        return "not measured" if self.before is None else self.text(self.before)

    @property
    def difference(self) -> str:
        """Return the difference to the week before, "" if unknown."""
        if self.now is None or self.before is None:
            return ""
        more = self.now - self.before
        if self.text(abs(more)) == self.text(0):
            return "the same"
        return f"{self.text(abs(more))} {'more' if more > 0 else 'less'}"


@dataclass(frozen=True, kw_only=True)
class TwoWeeks:
    changes: list[Change]
    waits: Waits
    waits_before: Waits
    failed: int
    failed_today: int


def two_weeks(
    *, now: dt.datetime, days: Mapping[int, Sequence[CapacityDay]]
) -> TwoWeeks:
    """Compare the weeks, in two queries. `days` are those of each site, by its id."""
    middle, since = now - WEEK, now - 2 * WEEK
    this, before = Q(ended_at__gte=middle), Q(ended_at__lt=middle)
    today = Q(ended_at__gte=now - dt.timedelta(days=1))
    counts = Operation.objects.filter(ended_at__gte=since).aggregate(
        **{f"{key}_now": Count("pk", filter=q & this) for key, q in _COUNTED.items()},
        **{f"{key}_was": Count("pk", filter=q & before) for key, q in _COUNTED.items()},
        failed_today=Count("pk", filter=_COUNTED["failed"] & today),
    )
    waits, waits_before = waits_between((middle, now), (since, middle))

    def counted(title: str, key: str, query: str) -> Change:
        return Change(
            title=title,
            now=counts[f"{key}_now"],
            before=counts[f"{key}_was"],
            query=query,
        )

    def measured(
        title: str,
        value: Callable[[CapacityDay], int | None],
        text: Callable[[float], str],
    ) -> Change:
        return Change(
            title=title,
            now=_sum_on(now.date(), days, value),
            before=_sum_on(middle.date(), days, value),
            text=text,
        )

    return TwoWeeks(
        changes=[
            counted(
                "Workspaces made",
                "made",
                f"kind={WorkspaceOperation.PROVISION}&state=succeeded",
            ),
            counted(
                "Workspaces retired",
                "retired",
                f"kind={WorkspaceOperation.RETIRE}&state=succeeded",
            ),
            counted(
                "Builds published",
                "builds",
                f"kind={TemplateOperation.BUILD}&state=succeeded",
            ),
            counted("Failures", "failed", "state=failed"),
            Change(
                title="Median time to ready",
                now=waits.p50_seconds,
                before=waits_before.p50_seconds,
                text=duration_text,
            ),
            measured("Clones", lambda day: day.clones, "{:,.0f}".format),
            measured("Space used", lambda day: day.used_bytes, _size),
        ],
        waits=waits,
        waits_before=waits_before,
        failed=counts["failed_now"],
        failed_today=counts["failed_today"],
    )


def _size(number: float) -> str:
    return size_text(int(number))


def _sum_on(
    day: dt.date,
    days: Mapping[int, Sequence[CapacityDay]],
    value: Callable[[CapacityDay], int | None],
) -> float | None:
    """Add up the sites' figures of a day, or of the last measured day before it."""
    found = []
    for of_site in days.values():
        known = [(one.day, value(one)) for one in of_site if one.day <= day]
        figures = [figure for _, figure in sorted(known) if figure is not None]
        found += figures[-1:]
    return float(sum(found)) if found else None
