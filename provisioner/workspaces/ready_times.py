"""Times from request to ready: by day, and typical ones."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db.models import (
    Case,
    Count,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    When,
)
from django.db.models.functions import Now

from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from provisioner.lib.percentiles import Percentile
from provisioner.lib.periods import period_of
from provisioner.workspaces.models import Workspace, WorkspaceOperation

USUAL_SINCE = dt.timedelta(days=28)
_TOOK = ExpressionWrapper(F("ended_at") - F("created_at"), output_field=DurationField())


_MEASURED: dict[str, Any] = {
    "number": Count("pk"),
    "p50": Percentile(_TOOK, share=0.5),
    "p95": Percentile(_TOOK, share=0.95),
}


# Provisionings that somebody waited for, so none of warm pools; put together once.
_MADE_AHEAD = Workspace.objects.filter(
    Q(is_pooled=True) | Q(made_ahead_at__isnull=False), subject=OuterRef("subject")
)
_REQUESTED = Operation.objects.filter(
    ~Exists(_MADE_AHEAD.order_by()), kind=WorkspaceOperation.PROVISION
).order_by()
_PROVISIONED = _REQUESTED.filter(state=Operation.State.SUCCEEDED)


@dataclass(frozen=True, kw_only=True)
class TimeToReady:
    """How long the workspaces of an hour or a day took, in seconds."""

    number: int
    p50_seconds: float
    p95_seconds: float


def ready_in(
    *, since: dt.datetime, until: dt.datetime, by_hour: bool
) -> dict[dt.datetime, TimeToReady]:
    """Return the time to ready of each hour or day in UTC with requests."""
    rows = (
        _PROVISIONED.filter(created_at__gte=since, created_at__lt=until)
        .annotate(at=period_of("created_at", by_hour=by_hour))
        .values_list("at")
        .annotate(**_MEASURED)
    )
    return {
        at: TimeToReady(
            number=number,
            p50_seconds=p50.total_seconds(),
            p95_seconds=p95.total_seconds(),
        )
        for at, number, p50, p95 in rows
    }


@dataclass(frozen=True, kw_only=True)
class Waits:
    """Times to ready of a period; None if it had no workspaces."""

    number: int
    p50_seconds: float | None
    p95_seconds: float | None


def waits_between(*spans: tuple[dt.datetime, dt.datetime]) -> list[Waits]:
    """Return the times to ready of each period, in one query. They do not overlap."""
    within = [
        When(ended_at__gte=since, ended_at__lt=until, then=index)
        for index, (since, until) in enumerate(spans)
    ]
    earliest = min(since for since, _ in spans)
    rows = (
        _PROVISIONED.filter(ended_at__gte=earliest)
        .annotate(span=Case(*within))
        .values_list("span")
        .annotate(**_MEASURED)
    )
    found = {
        index: Waits(
            number=number,
            p50_seconds=p50.total_seconds(),
            p95_seconds=p95.total_seconds(),
        )
        for index, number, p50, p95 in rows
    }
    none = Waits(number=0, p50_seconds=None, p95_seconds=None)
    return [found.get(index, none) for index in range(len(spans))]


def outcomes_since(since: dt.datetime, *, objective_seconds: float) -> dict[str, int]:
    """Return how many requests ended in time, late, and by a failure.

    One that somebody canceled, or that was refused, is none of them.
    """
    is_made = Q(state=Operation.State.SUCCEEDED)
    is_in_time = Q(took__lte=dt.timedelta(seconds=objective_seconds))
    return (
        _REQUESTED.filter(ended_at__gte=since)
        .annotate(took=_TOOK)
        .aggregate(
            in_time=Count("pk", filter=is_made & is_in_time),
            late=Count("pk", filter=is_made & ~is_in_time),
            failed=Count("pk", filter=Q(state=Operation.State.FAILED)),
        )
    )


# Clones of bisections are among these, ready when their command has ended.
_USUAL = (
    Workspace.objects.filter(
        created_at__gte=Now() - USUAL_SINCE,
        is_pooled=False,
        made_ahead_at=None,
        ready_at__gt=F("created_at"),
    )
    .exclude(purpose=Workspace.Purpose.BUILD)
    .order_by()
    .values_list("template")
    .annotate(
        p50=Percentile(
            ExpressionWrapper(
                F("ready_at") - F("created_at"), output_field=DurationField()
            ),
            share=0.5,
        )
    )
)


def usual_seconds(templates: Collection[Template]) -> dict[int, float]:
    """Return how long a workspace of each template usually takes to be ready.

    The median of the last weeks, by template id; templates without recent workspaces
    are left out. Build-only workspaces do not count, nor do adopted ones, which were
    ready before their row was written.
    """
    rows = _USUAL.filter(template__in=[template.pk for template in templates])
    return {template_id: p50.total_seconds() for template_id, p50 in rows}
