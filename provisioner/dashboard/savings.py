"""What clones save: time that nobody waits for a sync and a build, and space.

Hours: for each workspace that became ready, what sync and build of its template take
from nothing, less what its owner waited. The former is the median of the template's
clean builds as measured, or of all its builds where none was clean.

Space: for each workspace that is there at the end of a month, what the volume of its
template holds, less what the workspace took by itself when it was last measured.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, FloatField, Q, QuerySet, Sum
from django.db.models.expressions import Combinable
from django.db.models.functions import TruncMonth
from django.utils import timezone

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.lib.tables import Cell
from provisioner.limits.tallies import Tallies
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.ready_times import Percentile

MONTHS = 12
LATELY = dt.timedelta(days=30)
HOUR = 3600
COLUMNS = ("month", "team", "workspaces", "hours_not_spent", "bytes_not_used")


@dataclass(kw_only=True)
class Saved:
    """What the workspaces of a team saved in a month; "": those of no team."""

    month: dt.date
    team: str
    workspaces: int = 0
    seconds: float = 0.0
    unused_bytes: int = 0

    @property
    def hours(self) -> float:
        return round(self.seconds / HOUR, 1)

    @property
    def cells(self) -> list[Cell]:
        month = f"{self.month:%Y-%m}"
        return [month, self.team, self.workspaces, self.hours, self.unused_bytes]


@dataclass(frozen=True, kw_only=True)
class Lately:
    """What was saved in thirty days, and the space that is not used now."""

    workspaces: int
    seconds: float
    unused_bytes: int

    @property
    def hours(self) -> float:
        return self.seconds / HOUR


def saved_lately(tallies: Tallies, *, now: dt.datetime) -> Lately:
    """Return it in two queries; the space is that of every clone there is."""
    whole = _whole_seconds()
    rows = list(
        _ready(created_at__gte=now - LATELY).values("template").annotate(**_COUNTED)
    )
    taken = tallies.by_template
    used = {each.pk: each.used_bytes for each in tallies.templates if each.used_bytes}
    unused = (
        max(taken[pk].clones * held - taken[pk].taken_bytes, 0)
        for pk, held in used.items()
        if pk in taken
    )
    return Lately(
        workspaces=sum(row["number"] for row in rows),
        seconds=sum(_seconds(row, whole) for row in rows),
        unused_bytes=sum(unused),
    )


def savings(user: User) -> list[Saved]:
    """Return each team in each of the last months, the newest month first.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    months = last_months(timezone.now().astimezone(dt.UTC).date())
    whole, held = _whole_seconds(), _held_bytes()
    found: dict[tuple[dt.date, str], Saved] = {}

    def of(month: dt.date, team: str) -> Saved:
        return found.setdefault((month, team), Saved(month=month, team=team))

    for row in _by_month(since=months[-1]):
        team, made = row["owner__team__name"] or "", row["made"].date()
        if made in months:
            saved = of(made, team)
            saved.workspaces += row["number"]
            saved.seconds += _seconds(row, whole)
        unused = _unused(row, held)
        for month in months if unused else ():
            if made <= month and (row["gone"] is None or row["gone"].date() > month):
                of(month, team).unused_bytes += unused
    return sorted(found.values(), key=lambda one: (-one.month.toordinal(), one.team))


def totals(rows: Iterable[Saved]) -> list[tuple[Saved, list[Saved]]]:
    """Return each month's total, with its teams."""
    by_month: defaultdict[dt.date, list[Saved]] = defaultdict(list)
    for row in rows:
        by_month[row.month].append(row)
    return [
        (
            Saved(
                month=month,
                team="",
                workspaces=sum(one.workspaces for one in of_month),
                seconds=sum(one.seconds for one in of_month),
                unused_bytes=sum(one.unused_bytes for one in of_month),
            ),
            of_month,
        )
        for month, of_month in by_month.items()
    ]


def last_months(today: dt.date) -> list[dt.date]:
    """Return the first days of the last months, this one first."""
    months = [today.replace(day=1)]
    while len(months) < MONTHS:
        months.append((months[-1] - dt.timedelta(days=1)).replace(day=1))
    return months


_COUNTED: dict[str, Any] = {
    "number": Count("pk"),
    "waited": Sum(F("ready_at") - F("created_at")),
}


def _ready(**criteria: Any) -> QuerySet[Workspace]:
    """Return workspaces that somebody got and that became ready."""
    found = Workspace.objects.filter(is_pooled=False, ready_at__isnull=False)
    return found.filter(**criteria).order_by()


def _by_month(*, since: dt.date) -> Iterator[dict[str, Any]]:
    """Yield what became ready and went in the same months, by team and template."""
    begin = dt.datetime.combine(since, dt.time(), tzinfo=dt.UTC)
    return (
        _ready()
        .filter(Q(retired_at=None) | Q(retired_at__gte=begin))
        .annotate(
            made=TruncMonth("ready_at", tzinfo=dt.UTC),
            gone=TruncMonth("retired_at", tzinfo=dt.UTC),
        )
        .values("owner__team__name", "template", "made", "gone")
        .annotate(**_COUNTED, measured=Count("unique_bytes"), taken=Sum("unique_bytes"))
        .iterator()
    )


def _seconds(row: Mapping[str, Any], whole: Mapping[int, float]) -> float:
    """Return what some workspaces of one template saved, in seconds."""
    if row["template"] not in whole:
        return 0.0
    waited: dt.timedelta = row["waited"]
    alone = int(row["number"]) * whole[row["template"]]
    return max(alone - waited.total_seconds(), 0.0)


def _unused(row: Mapping[str, Any], held: Mapping[int, int]) -> int:
    alone = int(row["measured"]) * held.get(row["template"], 0)
    return max(alone - int(row["taken"] or 0), 0)


def _whole_seconds() -> dict[int, float]:
    """Return what sync and build take from nothing, by the template's id."""
    took = F("sync_seconds") + F("build_seconds")
    rows = Snapshot.objects.order_by().values_list("template")
    return {
        template: every if clean is None else clean
        for template, clean, every in rows.annotate(
            of_clean=_median(took, Q(is_clean=True)), of_all=_median(took)
        )
    }


def _median(took: Combinable, of: Q | None = None) -> Percentile:
    return Percentile(took, share=0.5, filter=of, output_field=FloatField())


def _held_bytes() -> dict[int, int]:
    """Return what the volume of each template holds, by its id, where it is known."""
    known = Template.objects.order_by().filter(used_bytes__isnull=False)
    return {pk: held or 0 for pk, held in known.values_list("pk", "used_bytes")}
