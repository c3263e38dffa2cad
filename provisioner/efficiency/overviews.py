"""What pages show of sites: their plans, and their data reduction by day."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from provisioner.efficiency.models import DedupePlan, DedupeVolume, ReductionDay
from provisioner.efficiency.queries import covered_by
from provisioner.lib.schedules import next_time
from provisioner.lib.sizes import size_text
from provisioner.sites.models import Site
from provisioner.web.charts import Chart, Point, Unit

CHART_DAYS = 90


@dataclass(frozen=True, kw_only=True)
class PlanOverview:
    """A site's plan, and when its next window begins; None while it is off."""

    plan: DedupePlan
    next_at: dt.datetime | None


def plan_overviews(*, now: dt.datetime) -> list[PlanOverview]:
    """Return the plan of each site, by name."""
    sites = Site.objects.select_related("dedupe_plan").order_by("name")
    return [
        PlanOverview(
            plan=plan, next_at=next_time(plan.cron, after=now) if plan.is_on else None
        )
        for site in sites
        for plan in [getattr(site, "dedupe_plan", None) or DedupePlan(site=site)]
    ]


@dataclass(frozen=True, kw_only=True)
class VolumeOverview:
    """A volume that a plan may be about, as last measured, and what the plan does."""

    volume: DedupeVolume
    day: ReductionDay | None
    treatment: str


def volumes_of(plan: DedupePlan) -> list[VolumeOverview]:
    """Return the volumes of a site that a plan may be about, by name."""
    volumes = DedupeVolume.objects.filter(site=plan.site_id, is_there=True)
    found = list(volumes.select_related("template"))
    days = ReductionDay.objects.filter(volume__in=found).order_by("volume_id", "-day")
    latest = {day.volume_id: day for day in days.distinct("volume_id")}
    covered = {volume.pk for volume in covered_by(plan, found)}
    return [
        VolumeOverview(
            volume=volume,
            day=latest.get(volume.pk),
            treatment=_treatment(volume, is_covered=volume.pk in covered),
        )
        for volume in found
    ]


def _treatment(volume: DedupeVolume, *, is_covered: bool) -> str:
    if volume.is_inline:
        return "Left alone: ONTAP deduplicates what is written, inline."
    return "Deduplicated by the plan." if is_covered else "Not part of the plan."


def latest_of_sites() -> list[ReductionDay]:
    """Return the newest figures of each site that was measured, by name."""
    days = ReductionDay.objects.filter(kind=ReductionDay.Kind.SITE)
    newest = days.order_by("site", "-day").distinct("site").select_related("site")
    return sorted(newest, key=lambda day: day.site.name)


def reduction_charts(sites: Sequence[Site]) -> list[Chart]:
    """Return what each site held and took on each of the last days. One query."""
    days = ReductionDay.objects.filter(kind=ReductionDay.Kind.SITE, site__in=sites)
    newest = days.order_by("-day")[: CHART_DAYS * max(1, len(sites))]
    by_site: dict[int, list[ReductionDay]] = {}
    for day in reversed(newest):
        by_site.setdefault(day.site_id, []).append(day)
    return [
        Chart(
            id=f"reduction-{site.pk}",
            title=f"Held and taken at {site}",
            unit=Unit.BYTES,
            columns=(
                *("Physical", "Logical", "Reduction", "By snapshots", "By clones"),
                *("By deduplication", "By compression"),
            ),
            points=[_point(day) for day in by_site.get(site.pk, [])],
            text=lambda number: size_text(int(number)),
        )
        for site in sites
    ]


def _point(day: ReductionDay) -> Point:
    begin = dt.datetime.combine(day.day, dt.time(), tzinfo=dt.UTC)
    parts = (
        *(day.by_snapshots_bytes, day.by_clones_bytes),
        *(day.by_deduplication_bytes, day.by_compression_bytes),
    )
    reduction = "not known" if day.reduction is None else f"{day.reduction}:1"
    return Point(
        label=f"{day.day:%-d %b %Y}",
        at=int(begin.timestamp()),
        value=day.physical_bytes,
        ceiling=day.logical_bytes,
        cells=(
            size_text(day.physical_bytes),
            size_text(day.logical_bytes),
            reduction,
            *("not known" if part is None else size_text(part) for part in parts),
        ),
    )
