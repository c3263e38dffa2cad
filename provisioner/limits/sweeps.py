"""Measure the space of sites and workspaces every two minutes.

The sweep runs anywhere; measuring runs in the queue of workers that reach ONTAP, with
a few requests for a site, however many volumes it has.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable

import structlog
from django.db import connection
from django.db.models import Q
from django.db.models.functions import Coalesce, Now
from procrastinate.contrib.django import app
from psycopg import sql

from provisioner.catalog.models import Snapshot, Template
from provisioner.copies.models import WorkspaceCopy
from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import STORAGE
from provisioner.gateways import registry
from provisioner.gateways.errors import (
    GatewayError,
    PermanentGatewayError,
    Refused,
)
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import (
    Aggregate,
    Efficiency,
    VolumeUsage,
    is_short_of_inodes,
    more_inodes,
    most_inodes,
)
from provisioner.lib import clocks
from provisioner.lib.names import TAG_PREFIX, tag_in
from provisioner.limits.events import site_measured
from provisioner.limits.samples import keep_limit_days
from provisioner.mirrors.models import Mirror
from provisioner.sites.models import (
    AggregateDay,
    AggregateSpace,
    CapacityDay,
    MeasuredVolume,
    Site,
    SiteCapacity,
)
from provisioner.sites.queries import spaces_of
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import mark_independent

DAYS_KEPT = 396

log = structlog.get_logger(__name__)


@app.periodic(cron="*/2 * * * *")
@app.task(name="sweep_capacity", queue="sweeps", queueing_lock="sweep_capacity")
def sweep_capacity(timestamp: int) -> None:
    """Queue a measurement of every site."""
    for site_id in Site.objects.values_list("pk", flat=True):
        job = measure_site.configure(queueing_lock=f"measure_site.{site_id}")
        defer_once(job, site_id=site_id)


@app.periodic(cron="13 * * * *")
@app.task(name="sweep_limit_days", queue="sweeps", queueing_lock="sweep_limit_days")
def sweep_limit_days(timestamp: int) -> None:
    """Save today's samples of template limits."""
    keep_limit_days(today=clocks.database_now().astimezone(dt.UTC).date())


@app.task(name="measure_site", queue=STORAGE)
def measure_site(site_id: int) -> None:
    """Measure a site; a failure is saved beside the last measurement."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        return
    try:
        measure(site)
    except GatewayError as error:
        log.warning("site_not_measured", site=site.name, **error.log_context())
        SiteCapacity.objects.get_or_create(site=site)
        SiteCapacity.objects.filter(site=site).update(
            status_message=str(error), failing_since=Coalesce("failing_since", Now())
        )


def measure(site: Site) -> SiteCapacity:
    """Measure with ONTAP and save the result. Safe to repeat.

    An account of the SVM may not see aggregates; everything else is then measured.

    Raises: GatewayError.
    """
    ontap = registry.ontap(site)
    began_at = clocks.database_now()
    version = _version_of(ontap)
    aggregates, message = _aggregates_of(site, ontap)
    own = next((each for each in aggregates if each.name == site.aggregate), None)
    size = own.size_bytes if own else 0
    available = own.available_bytes if own else 0
    usage = ontap.list_volume_usage()
    max_volumes = ontap.max_volumes()

    _write_bytes(usage)
    _note_splits(site, usage)
    others = _of_others(site, usage)
    ours = [volume for volume in usage if volume not in others]
    # SnapMirror gives a volume the inodes that its source has.
    filled = (f"{TAG_PREFIX}mirror=", f"{TAG_PREFIX}copy=")
    _give_inodes(ontap, site, [v for v in ours if not v.comment.startswith(filled)])
    _write_fullness(Workspace, ours)
    _write_fullness(WorkspaceCopy, ours)
    _write_templates(usage)
    _write_mirrors(usage)
    _write_clones_of_others(site, others)
    capacity, _ = SiteCapacity.objects.update_or_create(
        site=site,
        defaults={
            "ontap_version": version,
            "aggregate_size_bytes": size,
            "aggregate_used_bytes": size - available,
            "aggregate_available_bytes": available,
            **_saved(own.efficiency if own else None),
            "volumes": len(usage),
            "volumes_of_others": len(others),
            "max_volumes": max_volumes,
            "provisioned_bytes": _promised_on(site.aggregate, usage),
            "measured_at": began_at,
            "status_message": message,
            "failing_since": None,
        },
    )
    spaces = _write_aggregates(site, aggregates, usage, at=began_at)
    _keep_day(capacity, [each for each in spaces if each.name != site.aggregate])
    site_measured.send(Site, site=site, at=began_at)
    return capacity


def _version_of(ontap: OntapGateway) -> str:
    """Return ONTAP's release, "" if our account may not read it."""
    try:
        return ontap.get_cluster().version_number
    except Refused:
        return ""


def _aggregates_of(site: Site, ontap: OntapGateway) -> tuple[list[Aggregate], str]:
    """Return all aggregates, and why the site's own is not among them, "" if it is."""
    try:
        aggregates = ontap.list_aggregates()
    except PermanentGatewayError as error:
        return [], f"The aggregate could not be checked: {error}"
    if site.aggregate in {each.name for each in aggregates}:
        return aggregates, ""
    return aggregates, f"There is no aggregate {site.aggregate}."


def _write_aggregates(
    site: Site,
    aggregates: list[Aggregate],
    usage: list[VolumeUsage],
    *,
    at: dt.datetime,
) -> list[AggregateSpace]:
    """Save and return the space of each aggregate of the SVM."""
    spaces = spaces_of(site, aggregates, at=at)
    for space in spaces:
        space.provisioned_bytes = _promised_on(space.name, usage)
    AggregateSpace.objects.bulk_create(
        spaces,
        update_conflicts=True,
        unique_fields=("site", "name"),
        update_fields=(
            *("node", "size_bytes", "available_bytes"),
            *("provisioned_bytes", "node_volumes", "measured_at"),
        ),
    )
    AggregateSpace.objects.filter(site=site, measured_at__lt=at).delete()
    return spaces


def _keep_day(capacity: SiteCapacity, others: list[AggregateSpace]) -> None:
    """Save the day's figures so far, and delete days that are too old.

    `others` are the aggregates besides the site's own.

    Thirteen months are kept, which bounds the rows of a site.
    """
    today = clocks.database_now().astimezone(dt.UTC).date()
    is_known = capacity.aggregate_size_bytes > 0
    there = capacity.site.workspaces.there()
    _, is_new = CapacityDay.objects.update_or_create(
        site=capacity.site,
        day=today,
        defaults={
            "size_bytes": capacity.aggregate_size_bytes if is_known else None,
            "used_bytes": capacity.aggregate_used_bytes if is_known else None,
            "logical_bytes": capacity.logical_bytes,
            "saved_bytes": capacity.saved_bytes,
            "clones": there.count(),
            "volumes": capacity.volumes,
            "provisioned_bytes": capacity.provisioned_bytes,
        },
    )
    AggregateDay.objects.bulk_create(
        [
            AggregateDay(
                site=capacity.site,
                name=each.name,
                day=today,
                size_bytes=each.size_bytes,
                used_bytes=each.used_bytes,
                provisioned_bytes=each.provisioned_bytes,
            )
            for each in others
        ],
        update_conflicts=True,
        unique_fields=("site", "name", "day"),
        update_fields=("size_bytes", "used_bytes", "provisioned_bytes"),
    )
    if is_new:
        too_old = today - dt.timedelta(days=DAYS_KEPT)
        CapacityDay.objects.filter(site=capacity.site, day__lt=too_old).delete()
        AggregateDay.objects.filter(site=capacity.site, day__lt=too_old).delete()


def _saved(efficiency: Efficiency | None) -> dict[str, int | None]:
    if efficiency is None:
        return dict.fromkeys(("logical_bytes", "saved_bytes", "saved_within_bytes"))
    return {
        "logical_bytes": efficiency.whole.logical_bytes,
        "saved_bytes": efficiency.whole.saved_bytes,
        "saved_within_bytes": efficiency.within.saved_bytes,
    }


def _write_bytes(usage: Iterable[VolumeUsage]) -> None:
    """Save what workspaces have of their own, and what a split of each would copy."""
    measured = [volume for volume in usage if volume.own_bytes is not None]
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE workspaces_workspace SET unique_bytes = seen.own, "
            "split_bytes = seen.split, measured_at = %s "
            "FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) "
            "AS seen(uuid, own, split) "
            "WHERE volume_uuid = seen.uuid AND state <> %s",
            [
                clocks.database_now(),
                [volume.uuid for volume in measured],
                [volume.own_bytes for volume in measured],
                [volume.split_bytes for volume in measured],
                Workspace.State.RETIRED,
            ],
        )


def _note_splits(site: Site, usage: Iterable[VolumeUsage]) -> None:
    """Record which clones are independent: somebody split or moved them in ONTAP."""
    alone = [volume.uuid for volume in usage if volume.is_clone is False]
    clones = Workspace.objects.clones().filter(site=site, volume_uuid__in=alone)
    for workspace in clones:
        mark_independent(
            workspace,
            message="Its volume is independent of its snapshot: it was split or moved "
            "in ONTAP.",
        )


def _give_inodes(ontap: OntapGateway, site: Site, ours: Iterable[VolumeUsage]) -> None:
    """Raise the inode limit of our volumes before they run out. It takes no space."""
    for volume in ours:
        used, given = volume.used_inodes, volume.max_inodes
        if used is None or given is None or not is_short_of_inodes(used, given):
            continue
        wanted = min(more_inodes(used, given), most_inodes(volume.size_bytes))
        if wanted <= given:
            log.warning(
                "inodes_used_up", site=site.name, volume=volume.name, used_inodes=used
            )
            continue
        try:
            ontap.set_max_inodes(volume.uuid, max_inodes=wanted)
        except GatewayError as error:
            log.warning("inodes_not_given", site=site.name, **error.log_context())
        else:
            log.info(
                "inodes_given", site=site.name, volume=volume.name, max_inodes=wanted
            )


def _write_fullness(
    model: type[Workspace | WorkspaceCopy], ours: Iterable[VolumeUsage]
) -> None:
    """Save where the volumes of rows are, and how full, in bytes and inodes.

    There may be thousands.
    """
    seen = [v for v in ours if v.used_inodes is not None and v.max_inodes is not None]
    table = sql.Identifier(model._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL(
                "UPDATE {table} SET used_inodes = seen.used, "
                "max_inodes = seen.most, actual_size_bytes = seen.size, "
                "used_bytes = seen.bytes, aggregate = seen.aggregate, "
                "snapshot_reserve_percent = seen.reserve, snapshot_bytes = seen.held, "
                "grows_to_bytes = seen.grows "
                "FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[], "
                "%s::bigint[], %s::text[], %s::smallint[], %s::bigint[], "
                "%s::bigint[]) AS seen"
                "(uuid, used, most, size, bytes, aggregate, reserve, held, grows) "
                "WHERE volume_uuid = seen.uuid"
            ).format(table=table),
            [
                [volume.uuid for volume in seen],
                [volume.used_inodes for volume in seen],
                [volume.max_inodes for volume in seen],
                [volume.size_bytes for volume in seen],
                [volume.used_bytes for volume in seen],
                [volume.aggregate for volume in seen],
                [volume.snapshot_reserve_percent for volume in seen],
                [volume.snapshot_bytes for volume in seen],
                [volume.grows_to_bytes for volume in seen],
            ],
        )


def _write_templates(usage: Iterable[VolumeUsage]) -> None:
    """Save the place, size and usage of template volumes."""
    by_uuid = {volume.uuid: volume for volume in usage}
    templates = list(Template.objects.filter(volume_uuid__in=by_uuid))
    for template in templates:
        volume = by_uuid[template.volume_uuid]
        _set_measured(template, volume)
        template.snapshots_in_volume = volume.snapshots
    Template.objects.bulk_update(templates, [*_MEASURED, "snapshots_in_volume"])


def _write_mirrors(usage: Iterable[VolumeUsage]) -> None:
    """Save the place, size and usage of mirrors' volumes."""
    by_uuid = {volume.uuid: volume for volume in usage}
    mirrors = list(Mirror.objects.filter(volume_uuid__in=by_uuid))
    for mirror in mirrors:
        _set_measured(mirror, by_uuid[mirror.volume_uuid])
    Mirror.objects.bulk_update(mirrors, _MEASURED)


_MEASURED = (
    *("actual_size_bytes", "used_bytes", "snapshot_reserve_percent"),
    *("snapshot_bytes", "used_inodes", "max_inodes", "aggregate", "grows_to_bytes"),
)


def _set_measured(row: MeasuredVolume, volume: VolumeUsage) -> None:
    """Set what ONTAP said of a volume. Somebody may have moved it."""
    row.actual_size_bytes = volume.size_bytes
    row.grows_to_bytes = volume.grows_to_bytes
    row.used_bytes = volume.used_bytes
    row.snapshot_reserve_percent = volume.snapshot_reserve_percent
    row.snapshot_bytes = volume.snapshot_bytes
    row.used_inodes = volume.used_inodes
    row.max_inodes = volume.max_inodes
    row.aggregate = volume.aggregate or row.aggregate


def _write_clones_of_others(site: Site, others: Iterable[VolumeUsage]) -> None:
    """Save how many clones of a template's volume and snapshots are not ours."""
    of_volume = Counter(clone.parent_uuid for clone in others)
    of_snapshot = Counter(clone.parent_snapshot_uuid for clone in others)
    templates = list(Template.objects.filter(site=site).exclude(volume_uuid=""))
    for template in templates:
        template.clones_of_others = of_volume[template.volume_uuid]
    Template.objects.bulk_update(templates, ["clones_of_others"])
    snapshots = list(
        Snapshot.objects.filter(
            Q(ontap_uuid__in=of_snapshot) | Q(clones_of_others__gt=0),
            template__site=site,
        )
    )
    for snapshot in snapshots:
        snapshot.clones_of_others = of_snapshot[snapshot.ontap_uuid]
    Snapshot.objects.bulk_update(snapshots, ["clones_of_others"])


def _promised_on(aggregate: str, usage: list[VolumeUsage]) -> int:
    """Return how far the SVM's volumes on an aggregate may grow, in bytes.

    A FlexGroup counts with an equal share for each of its aggregates. A volume for
    which ONTAP names no aggregate counts in full.
    """
    return sum(
        volume.size_bytes // max(1, len(volume.aggregates))
        for volume in usage
        if not volume.aggregates or aggregate in volume.aggregates
    )


def _of_others(site: Site, usage: Iterable[VolumeUsage]) -> list[VolumeUsage]:
    """Return the volumes without our tag."""
    workspaces = Workspace.objects.filter(site=site).there()
    templates = Template.objects.filter(site=site)
    ours = {tag_in(row.volume_comment) for row in workspaces.only("tag", "purpose")}
    ours |= {tag_in(row.volume_comment) for row in templates.only("tag")}
    mirrors = Mirror.objects.filter(site=site).select_related("template")
    named = mirrors.only("tag", "is_former_home", "template__tag")
    ours |= {tag_in(row.volume_comment) for row in named}
    copies = WorkspaceCopy.objects.filter(site=site)
    ours |= {tag_in(row.volume_comment) for row in copies.only("tag")}
    return [volume for volume in usage if tag_in(volume.comment) not in ours]
