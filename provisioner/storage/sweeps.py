"""Measure the snapshots of every site each hour, with one request for a site."""

from __future__ import annotations

import structlog
from procrastinate.contrib.django import app

from provisioner.catalog.models import Snapshot
from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import STORAGE
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.lib import clocks
from provisioner.sites.models import Site
from provisioner.storage.models import SnapshotSize

log = structlog.get_logger(__name__)


@app.periodic(cron="23 * * * *")
@app.task(name="sweep_snapshot_sizes", queue="sweeps", queueing_lock="snapshot_sizes")
def sweep_snapshot_sizes(timestamp: int) -> None:
    """Queue a measurement of the snapshots of every site."""
    for site_id in Site.objects.values_list("pk", flat=True):
        lock = f"measure_snapshots.{site_id}"
        defer_once(measure_snapshots.configure(queueing_lock=lock), site_id=site_id)


@app.task(name="measure_snapshots", queue=STORAGE)
def measure_snapshots(site_id: int) -> None:
    """Measure the snapshots of a site; what was measured before stays if it fails."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        return
    try:
        measure(site)
    except GatewayError as error:
        log.warning("snapshots_not_measured", site=site.name, **error.log_context())


def measure(site: Site) -> None:
    """Ask ONTAP for the space of published snapshots, and save it. Safe to repeat.

    Raises: GatewayError.
    """
    began_at = clocks.database_now()
    found = {each.uuid: each for each in registry.ontap(site).list_snapshot_space()}
    published = Snapshot.objects.there().filter(
        template__site=site, ontap_uuid__in=found
    )
    SnapshotSize.objects.bulk_create(
        [
            SnapshotSize(
                snapshot_id=pk,
                size_bytes=found[uuid].size_bytes,
                reclaimable_bytes=found[uuid].reclaimable_bytes,
                measured_at=began_at,
            )
            for pk, uuid in published.order_by("pk").values_list("pk", "ontap_uuid")
        ],
        update_conflicts=True,
        unique_fields=("snapshot",),
        update_fields=("size_bytes", "reclaimable_bytes", "measured_at"),
    )
