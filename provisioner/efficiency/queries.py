"""Who may see plans, runs and savings, and when a site is quiet."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import Q, QuerySet

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.catalog.models import TemplateOperation
from provisioner.efficiency.models import (
    DedupePlan,
    DedupeRun,
    DedupeVolume,
    ReductionDay,
)
from provisioner.engine.models import Operation
from provisioner.lib.rows import with_words
from provisioner.sites.models import Site

OPEN = (DedupeRun.State.REQUESTED, DedupeRun.State.RUNNING)


def plan_of(site: Site) -> DedupePlan:
    """Return the plan of a site; the usual one, switched off, if it has none yet."""
    return DedupePlan.objects.filter(site=site).first() or DedupePlan(site=site)


def open_runs(site: Site) -> QuerySet[DedupeRun]:
    """Return the runs that were requested and have not ended."""
    runs = DedupeRun.objects.filter(volume__site=site, state__in=OPEN)
    return runs.select_related("volume").order_by("pk")


def covered_by(
    plan: DedupePlan, volumes: Iterable[DedupeVolume]
) -> Iterator[DedupeVolume]:
    """Yield the volumes that the plan deduplicates."""
    covers = {
        DedupeVolume.Kind.TEMPLATE: plan.covers_templates,
        DedupeVolume.Kind.MIRROR: plan.covers_mirrors,
        DedupeVolume.Kind.OTHER: True,
    }
    for volume in volumes:
        if covers[DedupeVolume.Kind(volume.kind)] and not volume.is_inline:
            yield volume


def runs_matching(
    user: User, *, text: str = "", site: str = "", state: str = ""
) -> QuerySet[DedupeRun]:
    """Return the runs of volumes that match all words of a text.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    runs = with_words(DedupeRun.objects.all(), text, "volume__name")
    wanted = {"volume__site__name": site, "state": state}
    named = runs.filter(**{name: value for name, value in wanted.items() if value})
    return named.select_related("volume__site", "volume__template")


def days_matching(
    user: User,
    *,
    text: str = "",
    site: str = "",
    kind: str = "",
    day: dt.date | None = None,
) -> QuerySet[ReductionDay]:
    """Return the days of sites, templates and volumes that match.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    days = ReductionDay.objects.select_related("site", "template", "volume")
    found = with_words(days, text, "template__name", "volume__name", "site__name")
    wanted: dict[str, Any] = {"site__name": site, "kind": kind, "day": day}
    return found.filter(**{name: value for name, value in wanted.items() if value})


def what_keeps_busy(site: Site) -> str:
    """Return what a site is busy with, as a sentence; "" if it is quiet.

    Builds of its templates count, and what somebody requested for its workspaces.
    """
    running = Operation.objects.filter(state=Operation.State.RUNNING)
    build = (
        running.filter(kind=TemplateOperation.BUILD, subject__template__site=site)
        .select_related("subject__template")
        .first()
    )
    if build is not None:
        return f"{build.subject} is being built."
    is_here = Q(subject__workspace__site=site)
    requests = running.filter(is_here, is_background=False).count()
    if requests:
        return "A request waits." if requests == 1 else f"{requests} requests wait."
    return ""
