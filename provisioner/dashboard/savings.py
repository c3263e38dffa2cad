"""The savings by clones: time not spent on syncs and builds, and space.

Hours: for each workspace that became ready, the time of a sync and build of its
template from scratch, less what its owner waited. The former is the measured median of
the template's clean builds, or of all its builds if none was clean.

Space: for each workspace that exists at the end of a month, what the volume of its
template holds, less what the workspace itself took when last measured.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    Count,
    DateTimeField,
    F,
    FloatField,
    Func,
    IntegerField,
    Q,
    QuerySet,
    Sum,
    Value,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Greatest, Least
from django.utils import timezone

from provisioner.accounts import permissions
from provisioner.accounts.models import Team, User
from provisioner.catalog.models import Snapshot
from provisioner.lib.percentiles import Percentile
from provisioner.lib.rows import plain_rows
from provisioner.lib.tables import Cell
from provisioner.limits.tallies import Tallies
from provisioner.workspaces.models import Workspace

MONTHS = 12
LATELY = dt.timedelta(days=30)
HOUR = 3600
COLUMNS = ("month", "team", "workspaces", "hours_not_spent", "bytes_not_used")


@dataclass(kw_only=True)
class Saved:
    """What the workspaces of a team saved in a month; "" stands for no team."""

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
    """The savings of the last thirty days, and the space saved now."""

    workspaces: int
    seconds: float
    unused_bytes: int

    @property
    def hours(self) -> float:
        return self.seconds / HOUR


def saved_lately(tallies: Tallies, *, now: dt.datetime) -> Lately:
    """Return the savings of the last thirty days. Two queries.

    Space counts every existing clone.
    """
    whole = _whole_seconds()
    rows = (
        _ready(created_at__gte=now - LATELY)
        .values_list("template")
        .annotate(**_COUNTED)
    )
    taken = tallies.by_template
    used = {each.pk: each.used_bytes for each in tallies.templates if each.used_bytes}
    unused = (
        max(taken[pk].clones * held - taken[pk].taken_bytes, 0)
        for pk, held in used.items()
        if pk in taken
    )
    return Lately(
        workspaces=sum(number for _, number, _ in rows),
        seconds=sum(
            _seconds(number, waited, whole.get(template_id))
            for template_id, number, waited in rows
        ),
        unused_bytes=sum(unused),
    )


def savings(user: User) -> list[Saved]:
    """Return each team in each of the last months, newest month first.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    months = last_months(timezone.now().astimezone(dt.UTC).date())
    whole = _whole_seconds()
    teams: dict[int | None, str] = dict(Team.objects.values_list("pk", "name"))
    found: dict[tuple[int, int | None], Saved] = {}

    def of(age: int, team_id: int | None) -> Saved:
        saved = found.get((age, team_id))
        if saved is None:
            saved = Saved(month=months[age], team=teams.get(team_id, ""))
            found[age, team_id] = saved
        return saved

    for team_id, template_id, made, number, waited in plain_rows(_got(months)):
        saved = of(made, team_id)
        saved.workspaces += number
        saved.seconds += _seconds(number, waited, whole.get(template_id))
    for team_id, made, gone, unused_bytes in plain_rows(_unused(months)):
        for age in range(gone + 1, made + 1):
            of(age, team_id).unused_bytes += int(unused_bytes)
    return sorted(
        found.values(),
        key=lambda one: (-one.month.toordinal(), not one.team, one.team),
    )


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
    "number": Count("*"),
    "waited": Sum(F("ready_at") - F("created_at")),
}


def _ready(**criteria: Any) -> QuerySet[Workspace]:
    """Return workspaces that became ready for somebody."""
    found = Workspace.objects.filter(is_pooled=False, ready_at__isnull=False)
    return found.filter(**criteria).order_by()


def _got(
    months: Sequence[dt.date],
) -> QuerySet[Workspace, tuple[int | None, int, int, int, dt.timedelta]]:
    """Return team, template, month, number and waits of the workspaces made ready."""
    return (
        _ready(ready_at__gte=_begin(months[-1]))
        .annotate(made=_age("ready_at", months))
        .values_list("owner__team", "template", "made")
        .annotate(**_COUNTED)
    )


def _unused(
    months: Sequence[dt.date],
) -> QuerySet[Workspace, tuple[int | None, int, int, int]]:
    """Return team, first and last month, and the bytes saved between the two.

    The months are positions in `months`. The last is that in which the workspace was
    purged, -1 if it was not. Workspaces older than all months count from the oldest.
    """
    oldest = len(months) - 1
    return (
        _ready(unique_bytes__isnull=False, template__used_bytes__isnull=False)
        .filter(Q(retired_at=None) | Q(retired_at__gte=_begin(months[-1])))
        .annotate(
            made=Least(_age("ready_at", months), oldest),
            gone=Coalesce(_age("retired_at", months), -1),
        )
        .values_list("owner__team", "made", "gone")
        .annotate(bytes=Sum(Greatest(F("template__used_bytes") - F("unique_bytes"), 0)))
    )


def _age(moment: str, months: Sequence[dt.date]) -> Combinable:
    """Return the position of a moment's month.

    Months are newest first; older moments get their number.
    """
    begins = Value(
        [_begin(month) for month in reversed(months)],
        output_field=ArrayField(DateTimeField()),
    )
    bucket = Func(
        F(moment), begins, function="WIDTH_BUCKET", output_field=IntegerField()
    )
    return len(months) - bucket


def _begin(month: dt.date) -> dt.datetime:
    return dt.datetime.combine(month, dt.time(), tzinfo=dt.UTC)


def _seconds(number: int, waited: dt.timedelta, whole: float | None) -> float:
    """Return what workspaces of a template saved, if each would have taken `whole`."""
    return max(number * whole - waited.total_seconds(), 0.0) if whole else 0.0


def _whole_seconds() -> dict[int, float]:
    """Return the time of a sync and build from scratch, by template id."""
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
