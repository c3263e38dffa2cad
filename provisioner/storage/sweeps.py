"""Measure snapshots, save what workspaces have, split what is due, keep policies."""

from __future__ import annotations

import datetime as dt

import structlog
from procrastinate.contrib.django import app

from provisioner.accounts.system import system_user
from provisioner.catalog.models import Snapshot, VolumePolicy
from provisioner.engine.deferring import defer_once
from provisioner.engine.models import Operation
from provisioner.engine.queues import STORAGE
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused
from provisioner.sites.models import Ceiling, Site
from provisioner.storage.actions import workspace_split
from provisioner.storage.models import OwnBytesDay, SnapshotSize, SplitPolicy
from provisioner.storage.overviews import due_splits
from provisioner.storage.tasks import keep_ceilings_soon, keep_volume_policies_soon
from provisioner.workspaces.models import Workspace, WorkspaceOperation

AT_ONCE = 3
DAYS_KEPT = 90

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


@app.periodic(cron="43 * * * *")
@app.task(name="sweep_own_bytes", queue="sweeps", queueing_lock="sweep_own_bytes")
def sweep_own_bytes(timestamp: int) -> None:
    """Save what each workspace has of its own today."""
    keep_own_bytes(today=clocks.database_now().astimezone(dt.UTC).date())


def keep_own_bytes(*, today: dt.date) -> None:
    """Save the day's samples so far, in UTC, and delete old ones. Safe to repeat."""
    there = Workspace.objects.there().order_by("pk")
    OwnBytesDay.objects.bulk_create(
        [
            OwnBytesDay(workspace_id=pk, day=today, own_bytes=own)
            for pk, own in there.values_list("pk", "unique_bytes")
            if own is not None
        ],
        batch_size=5000,
        update_conflicts=True,
        unique_fields=("workspace", "day"),
        update_fields=("own_bytes",),
    )
    too_old = today - dt.timedelta(days=DAYS_KEPT)
    OwnBytesDay.objects.filter(day__lte=too_old).delete()


@app.periodic(cron="37 * * * *")
@app.task(name="sweep_splits", queue="sweeps", queueing_lock="sweep_splits")
def sweep_splits(timestamp: int) -> None:
    """Split what is due where a site's policy is switched on."""
    policies = SplitPolicy.objects.filter(splits_by_itself=True)
    for policy in policies.select_related("site"):
        split_due(policy)


@app.periodic(cron="*/5 * * * *")
@app.task(name="sweep_ceilings", queue="sweeps", queueing_lock="sweep_ceilings")
def sweep_ceilings(timestamp: int) -> None:
    """Apply the ceilings of each site that has any."""
    sites = Ceiling.objects.order_by("site").values_list("site", flat=True)
    for site_id in sites.distinct():
        keep_ceilings_soon(site_id)


@app.periodic(cron="3-59/5 * * * *")
@app.task(
    name="sweep_volume_policies", queue="sweeps", queueing_lock="sweep_volume_policies"
)
def sweep_volume_policies(timestamp: int) -> None:
    """Apply the policies of volumes that are not in force yet.

    What somebody changes in ONTAP afterwards is drift.
    """
    waiting = VolumePolicy.objects.filter(applied_at=None)
    sites = waiting.order_by("site").values_list("site", flat=True)
    for site_id in sites.distinct():
        keep_volume_policies_soon(site_id)


def split_due(policy: SplitPolicy) -> int:
    """Request the splits that are due at a site, a few at a time; return their number.

    The rest follows with the next sweeps.
    """
    running = Operation.objects.filter(
        kind=WorkspaceOperation.SPLIT,
        state=Operation.State.RUNNING,
        subject__workspace__site=policy.site,
    ).count()
    begun = 0
    for due in due_splits(policy, now=clocks.database_now()):
        if running + begun >= AT_ONCE:
            break
        try:
            workspace_split(
                by=system_user(),
                workspace=due.workspace,
                reason=f"The policy of {policy.site}: older than "
                f"{policy.older_than_days} days, and alone holds {due.snapshot.name}.",
            )
        except ActionRefused as refusal:
            log.info(
                "split_not_begun",
                workspace_id=due.workspace.pk,
                reason=refusal.sentence,
            )
        else:
            begun += 1
    return begun


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
