"""Measure what a site's volumes hold and take, and save it by day."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from provisioner.catalog.models import Template
from provisioner.efficiency.models import DedupeVolume, ReductionDay
from provisioner.efficiency.queries import plan_of
from provisioner.gateways.errors import PermanentGatewayError
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import (
    Efficiency,
    Reduction,
    VolumeEfficiency,
)
from provisioner.lib import clocks
from provisioner.mirrors.models import Mirror
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace

DAYS_KEPT = 396
_FIGURES = (
    *("logical_bytes", "physical_bytes", "provisioned_bytes", "full_percent"),
    *("by_snapshots_bytes", "by_clones_bytes"),
    *("by_deduplication_bytes", "by_compression_bytes"),
    *("without_snapshots_ratio", "within_ratio"),
)

Seen = dict[str, VolumeEfficiency]


def note_volumes(site: Site, seen: Seen) -> list[DedupeVolume]:
    """Save which volumes a plan of the site may be about, and return them.

    Clones are none: what they share, they share with their snapshot.
    """
    now = clocks.database_now()
    templates = dict(
        Template.objects.filter(site=site, volume_uuid__in=seen).values_list(
            "volume_uuid", "pk"
        )
    )
    mirrors = dict(
        Mirror.objects.filter(site=site, volume_uuid__in=seen).values_list(
            "volume_uuid", "template_id"
        )
    )
    named = set(plan_of(site).names)
    rows = []
    for uuid, volume in seen.items():
        if volume.is_clone:
            continue
        if uuid in templates:
            kind, template_id = DedupeVolume.Kind.TEMPLATE, templates[uuid]
        elif uuid in mirrors:
            kind, template_id = DedupeVolume.Kind.MIRROR, mirrors[uuid]
        elif volume.name in named:
            kind, template_id = DedupeVolume.Kind.OTHER, None
        else:
            continue
        rows.append(
            DedupeVolume(
                site=site,
                ontap_uuid=uuid,
                name=volume.name,
                kind=kind,
                template_id=template_id,
                is_inline=volume.is_inline,
                seen_at=now,
            )
        )
    DedupeVolume.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=("site", "ontap_uuid"),
        update_fields=(
            *("name", "kind", "template", "is_there", "is_inline", "seen_at"),
        ),
    )
    there = DedupeVolume.objects.filter(site=site)
    there.exclude(ontap_uuid__in=[row.ontap_uuid for row in rows]).update(
        is_there=False
    )
    return list(there.filter(is_there=True).select_related("template"))


def keep_days(
    site: Site, *, ontap: OntapGateway, seen: Seen, volumes: Sequence[DedupeVolume]
) -> None:
    """Save the day's figures so far, in UTC, and delete old ones. Safe to repeat.

    An account of the SVM may not see aggregates; the site has no figures then.

    Raises: GatewayError.
    """
    today = clocks.database_now().astimezone(dt.UTC).date()
    in_snapshots: Counter[str] = Counter()
    for snapshot in ontap.list_snapshot_space():
        in_snapshots[snapshot.volume_uuid] += snapshot.size_bytes
    days = [
        *_of_site(site, ontap, seen.values()),
        *_of_templates(site, seen, in_snapshots, volumes),
        *_of_volumes(site, seen, in_snapshots, volumes),
    ]
    for day in days:
        day.day = today
    ReductionDay.objects.bulk_create(
        days,
        update_conflicts=True,
        unique_fields=("site", "day", "kind", "template", "volume"),
        update_fields=_FIGURES,
    )
    too_old = today - dt.timedelta(days=DAYS_KEPT)
    ReductionDay.objects.filter(site=site, day__lt=too_old).delete()


def _of_site(
    site: Site, ontap: OntapGateway, seen: Iterable[VolumeEfficiency]
) -> Iterator[ReductionDay]:
    """Yield the site: all aggregates that volumes of the SVM are in, and its own."""
    used = {site.aggregate, *(volume.aggregate for volume in seen)}
    try:
        aggregates = [each for each in ontap.list_aggregates() if each.name in used]
    except PermanentGatewayError:
        return
    known = [each.efficiency for each in aggregates if each.efficiency is not None]
    if not known or len(known) < len(aggregates):
        return
    size = sum(each.size_bytes for each in aggregates)
    free = sum(each.available_bytes for each in aggregates)
    names = {each.name for each in aggregates}
    yield ReductionDay(
        site=site,
        kind=ReductionDay.Kind.SITE,
        provisioned_bytes=sum(
            volume.size_bytes for volume in seen if volume.aggregate in names
        ),
        full_percent=_percent(size - free, size),
        **figures_of(_together(known)),
    )


def _together(known: Sequence[Efficiency]) -> Efficiency:
    """Return the sums of several aggregates; None where one of them is not known."""
    return Efficiency(
        whole=_sum([each.whole for each in known]),
        within=_sum([each.within for each in known]),
        without_snapshots=(
            _sum([each.without_snapshots for each in known if each.without_snapshots])
            if all(each.without_snapshots for each in known)
            else None
        ),
        deduplicated_bytes=(
            sum(each.deduplicated_bytes or 0 for each in known)
            if all(each.deduplicated_bytes is not None for each in known)
            else None
        ),
    )


def _sum(parts: Iterable[Reduction]) -> Reduction:
    found = list(parts)
    return Reduction(
        logical_bytes=sum(each.logical_bytes for each in found),
        saved_bytes=sum(each.saved_bytes for each in found),
    )


def figures_of(efficiency: Efficiency) -> dict[str, Any]:
    """Return the figures of aggregates: physical as Harvest computes it, and what
    each part saves as the difference between two of its figures.

    ONTAP tells deduplication from compression by the bytes that it counts in blocks.

    Source: conf/rest/9.12.0/aggr.yaml of github.com/NetApp/harvest (total_physical_used
    is logical used less savings, likewise without snapshots and FlexClones).
    """
    whole, within = efficiency.whole, efficiency.within
    active = efficiency.without_snapshots
    deduplicated = compressed = None
    if efficiency.deduplicated_bytes is not None:
        deduplicated = min(efficiency.deduplicated_bytes, within.saved_bytes)
        compressed = within.saved_bytes - deduplicated
    by_snapshots = by_clones = without_snapshots = None
    if active is not None:
        by_snapshots = max(0, whole.saved_bytes - active.saved_bytes)
        by_clones = max(0, active.saved_bytes - within.saved_bytes)
        without_snapshots = active.ratio
    return {
        "logical_bytes": whole.logical_bytes,
        "physical_bytes": whole.physical_bytes,
        "by_snapshots_bytes": by_snapshots,
        "by_clones_bytes": by_clones,
        "by_deduplication_bytes": deduplicated,
        "by_compression_bytes": compressed,
        "without_snapshots_ratio": without_snapshots,
        "within_ratio": within.ratio,
    }


def _of_templates(
    site: Site,
    seen: Seen,
    in_snapshots: Counter[str],
    volumes: Iterable[DedupeVolume],
) -> Iterator[ReductionDay]:
    """Yield each template with its clones at the site."""
    clones: dict[int, list[VolumeEfficiency]] = {}
    there = Workspace.objects.filter(site=site, volume_uuid__in=seen).there()
    for template_id, uuid in there.values_list("template_id", "volume_uuid"):
        clones.setdefault(template_id, []).append(seen[uuid])
    for volume in volumes:
        if volume.template_id is None:
            continue
        own = _of_volume(seen[volume.ontap_uuid], in_snapshots[volume.ontap_uuid])
        cloned = clones.get(volume.template_id, [])
        logical = sum(clone.logical_bytes or 0 for clone in cloned)
        physical = sum(clone.physical_bytes or 0 for clone in cloned)
        own["logical_bytes"] += logical
        own["physical_bytes"] += physical
        own["provisioned_bytes"] += sum(clone.size_bytes for clone in cloned)
        yield ReductionDay(
            site=site,
            kind=ReductionDay.Kind.TEMPLATE,
            template=volume.template,
            by_clones_bytes=max(0, logical - physical),
            **own,
        )


def _of_volumes(
    site: Site,
    seen: Seen,
    in_snapshots: Counter[str],
    volumes: Iterable[DedupeVolume],
) -> Iterator[ReductionDay]:
    for volume in volumes:
        uuid = volume.ontap_uuid
        yield ReductionDay(
            site=site,
            kind=ReductionDay.Kind.VOLUME,
            volume=volume,
            **_of_volume(seen[uuid], in_snapshots[uuid]),
        )


def _of_volume(volume: VolumeEfficiency, in_snapshots_bytes: int) -> dict[str, Any]:
    """Return the figures of a volume with its snapshots, each counted in full."""
    active = volume.logical_bytes or 0
    return {
        "logical_bytes": active + in_snapshots_bytes,
        "physical_bytes": volume.physical_bytes or 0,
        "provisioned_bytes": volume.size_bytes,
        "full_percent": _percent(active, volume.size_bytes),
        "by_snapshots_bytes": max(0, in_snapshots_bytes - volume.snapshot_bytes),
        "by_deduplication_bytes": volume.deduplicated_bytes,
        "by_compression_bytes": volume.compressed_bytes,
    }


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None
