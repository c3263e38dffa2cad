"""How long workspaces took from the click to ready: by day, and what is usual."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import (
    Aggregate,
    Count,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import TruncDate
from django.utils import timezone

from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from provisioner.workspaces.models import Workspace, WorkspaceOperation

USUAL_SINCE = dt.timedelta(days=28)
TOOK = ExpressionWrapper(F("ended_at") - F("created_at"), output_field=DurationField())


class Percentile(Aggregate):
    """The value that this share of all is not above, between two where none is it."""

    function = "PERCENTILE_CONT"
    name = "percentile"
    template = "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"

    def __init__(
        self, expression: Combinable, *, share: float, filter: Q | None = None
    ) -> None:
        super().__init__(
            expression, share=share, filter=filter, output_field=DurationField()
        )


@dataclass(frozen=True, kw_only=True)
class DayToReady:
    """How long the workspaces of one day took, in seconds."""

    day: dt.date
    number: int
    p50_seconds: float
    p95_seconds: float


def days_to_ready(*, since: dt.datetime) -> list[DayToReady]:
    """Return each day, in UTC, on which workspaces became ready, the oldest first."""
    rows = (
        _provisioned()
        .filter(ended_at__gte=since)
        .annotate(day=TruncDate("ended_at", tzinfo=dt.UTC))
        .values("day")
        .annotate(
            number=Count("pk"),
            p50=Percentile(TOOK, share=0.5),
            p95=Percentile(TOOK, share=0.95),
        )
        .order_by("day")
    )
    return [
        DayToReady(
            day=row["day"],
            number=row["number"],
            p50_seconds=row["p50"].total_seconds(),
            p95_seconds=row["p95"].total_seconds(),
        )
        for row in rows
    ]


def usual_seconds(templates: Collection[Template]) -> dict[int, float]:
    """Return how long a workspace of each template usually takes to be ready.

    The median of the last weeks, by the template's id; one of which none was made
    lately is not in it.
    """
    rows = (
        _provisioned()
        .filter(
            ended_at__gte=timezone.now() - USUAL_SINCE,
            subject__workspace__template__in=[template.pk for template in templates],
        )
        .values("subject__workspace__template")
        .annotate(p50=Percentile(TOOK, share=0.5))
    )
    return {
        row["subject__workspace__template"]: row["p50"].total_seconds() for row in rows
    }


def _provisioned() -> QuerySet[Operation]:
    """Return the makings that somebody waited for: not those for warm pools."""
    made_ahead = Workspace.objects.filter(
        Q(is_pooled=True) | Q(made_ahead_at__isnull=False)
    ).order_by()
    return Operation.objects.filter(
        ~Exists(made_ahead.filter(subject=OuterRef("subject"))),
        kind=WorkspaceOperation.PROVISION,
        state=Operation.State.SUCCEEDED,
    ).order_by()
