"""Attach policies to the volumes of workspaces, and follow what ONTAP takes.

Every five minutes a site is asked for its volumes and for these snapshots, with one
request each. Clients are read once a new snapshot is seen, and only those that were
used since they were read last.
"""

from __future__ import annotations

import contextlib
import datetime as dt

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef, Subquery
from procrastinate.contrib.django import app

from provisioner.audit_log.actions import record_event
from provisioner.engine.deferring import defer_once
from provisioner.engine.models import Operation
from provisioner.engine.queues import PERFORCE, STORAGE
from provisioner.gateways import registry
from provisioner.gateways.errors import (
    AlreadyExists,
    GatewayError,
    InUse,
    PermanentGatewayError,
)
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.lib import clocks
from provisioner.lib.names import TAG_PREFIX
from provisioner.lib.refusals import StepRefused
from provisioner.sites.models import Site
from provisioner.workspace_snapshots.models import (
    BEFORE_RESTORE,
    NO_POLICY,
    PREFIX,
    ClientReading,
    SnapshotPolicy,
    WorkspaceSnapshot,
)
from provisioner.workspace_snapshots.queries import (
    near_their_bound,
    policy_of,
    sites_with_snapshots,
    snapshots_of,
)
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.steps.recording import read_client

log = structlog.get_logger(__name__)

FRESH = dt.timedelta(minutes=5)
"""How old the figure may be by which a snapshot is deleted: the time of one sweep."""

READ_AT_ONCE = 100
"""How many clients one sweep reads; the rest follows with the next."""

_OUR_TAG = f"{TAG_PREFIX}workspace="


@app.periodic(cron="*/5 * * * *")
@app.task(
    name="sweep_workspace_snapshots",
    queue="sweeps",
    queueing_lock="sweep_workspace_snapshots",
)
def sweep_workspace_snapshots(timestamp: int) -> None:
    """Ask workers to follow the snapshots of each site."""
    for site_id in sites_with_snapshots().values_list("pk", flat=True):
        for task in (follow_site, read_clients):
            # One at a time: with many clients it may take longer than until the next.
            lock = f"{task.name}.{site_id}"
            job = task.configure(queueing_lock=lock, lock=lock)
            defer_once(job, site_id=site_id)


@app.task(name="follow_workspace_snapshots", queue=STORAGE)
def follow_site(site_id: int) -> None:
    """Apply the site's policies, and record which snapshots there are."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        return
    ontap = registry.ontap(site)
    try:
        apply_policies(site, ontap)
        record_snapshots(site, ontap)
        bound_snapshots(site, ontap, now=clocks.database_now())
    except GatewayError as error:
        log.warning(
            "workspace_snapshots_not_followed", site=site.name, **error.log_context()
        )


def apply_policies(site: Site, ontap: OntapGateway) -> None:
    """Attach to each ready workspace's volume what its policy says. Safe to repeat.

    Where somebody attached a policy of their own, it stays.

    Raises: GatewayError.
    """
    policies = list(SnapshotPolicy.objects.filter(site=site))
    volumes = {
        volume.uuid: volume for volume in ontap.list_volumes(comment_prefix=_OUR_TAG)
    }
    known: set[str] = {NO_POLICY}
    ready = Workspace.objects.filter(
        site=site, state=Workspace.State.READY, is_pooled=False
    )
    for workspace in ready.exclude(volume_uuid="").order_by("pk"):
        volume = volumes.get(workspace.volume_uuid)
        if volume is None or not _is_ours(volume.snapshot_policy):
            continue
        policy = policy_of(workspace, policies)
        wanted = policy.ontap_name if policy else NO_POLICY
        if volume.snapshot_policy == wanted:
            continue
        with contextlib.suppress(PermanentGatewayError):  # such as one that is offline
            if wanted not in known and policy is not None:
                _ensure_policy(ontap, policy)
                known.add(wanted)
            ontap.set_snapshot_policy(volume.uuid, name=wanted)


def _is_ours(name: str) -> bool:
    return name == NO_POLICY or name.startswith("cloneyard-")


def _ensure_policy(ontap: OntapGateway, policy: SnapshotPolicy) -> None:
    if not ontap.has_snapshot_policy(policy.ontap_name):
        with contextlib.suppress(AlreadyExists):  # ours, before a lost reply
            ontap.create_snapshot_policy(
                policy.ontap_name, keep=policy.keep, prefix=PREFIX
            )


def record_snapshots(site: Site, ontap: OntapGateway) -> None:
    """Record which of these snapshots there are. Safe to repeat.

    Raises: GatewayError.
    """
    rows = WorkspaceSnapshot.objects.filter(workspace__site=site)
    known = list(rows.values_list("pk", flat=True))  # a restore adds others meanwhile
    found = ontap.list_scheduled_snapshots(prefix=PREFIX)
    there = Workspace.objects.there().filter(site=site).exclude(volume_uuid="")
    by_volume = dict(there.order_by("pk").values_list("volume_uuid", "pk"))
    seen = [
        WorkspaceSnapshot(
            workspace_id=by_volume[volume_uuid],
            name=each.name,
            ontap_uuid=each.uuid,
            taken_at=each.created_at,
        )
        for volume_uuid, snapshots in found.items()
        if volume_uuid in by_volume
        for each in snapshots
        if each.created_at is not None
    ]
    with transaction.atomic():
        gone = rows.filter(pk__in=known).exclude(
            ontap_uuid__in=[each.ontap_uuid for each in seen]
        )
        ours = gone.exclude(deleted_because="").select_related("workspace")
        for snapshot in ours.select_for_update(of=("self",)):  # the reply was lost
            _note_deleted(snapshot)
        gone.delete()
        rows.filter(pk__in=known).exclude(deleted_because="").update(deleted_because="")
        WorkspaceSnapshot.objects.bulk_create(seen, ignore_conflicts=True)
        unused = ClientReading.objects.filter(workspace__site=site)
        snapshots = WorkspaceSnapshot.objects.filter(reading=OuterRef("pk"))
        unused.filter(~Exists(snapshots)).delete()


def bound_snapshots(site: Site, ontap: OntapGateway, *, now: dt.datetime) -> None:
    """Delete the oldest snapshot where they hold more than their policy allows.

    One at a time, with a measurement in between, and never the newest; nor what a
    restore kept, or a clone needs. Each is in the audit log.

    Raises: GatewayError.
    """
    for workspace, held in near_their_bound(site):
        is_fresh = workspace.measured_at and workspace.measured_at > now - FRESH
        if not held.is_exceeded or not is_fresh:
            continue
        scheduled = snapshots_of(workspace).exclude(name__startswith=BEFORE_RESTORE)
        for oldest in reversed(list(scheduled)[1:]):
            oldest.deleted_because = held.sentence
            oldest.save(update_fields=["deleted_because"])
            try:
                ontap.delete_snapshot(
                    workspace.volume_uuid, snapshot_uuid=oldest.ontap_uuid
                )
            except InUse:
                oldest.deleted_because = ""
                oldest.save(update_fields=["deleted_because"])
                continue
            _note_deleted(oldest)
            break


@transaction.atomic
def _note_deleted(snapshot: WorkspaceSnapshot) -> None:
    record_event(
        snapshot.workspace,
        kind="workspace_snapshot_deleted",
        message=f"Its oldest snapshot {snapshot.name} was deleted. "
        f"{snapshot.deleted_because}",
    )
    snapshot.delete()


@app.task(name="read_clients_of_snapshots", queue=PERFORCE)
def read_clients(site_id: int) -> None:
    """Record what the clients have whose workspaces have new snapshots."""
    unread = WorkspaceSnapshot.objects.filter(
        workspace=OuterRef("pk"), reading__isnull=True
    )
    workspaces = Workspace.objects.filter(
        Exists(unread), site=site_id, state=Workspace.State.READY
    ).select_related("site__perforce_server", "snapshot")
    for workspace in workspaces.order_by("pk")[:READ_AT_ONCE]:
        if workspace.client_name:
            _read(workspace)


def _read(workspace: Workspace) -> None:
    restores = workspace.operations.filter(
        kind=WorkspaceOperation.RESTORE_SNAPSHOT, state=Operation.State.RUNNING
    )
    snapshots = WorkspaceSnapshot.objects.filter(workspace=workspace, reading=None)
    snapshots.update(reading=_reading_before_restore())
    unread = list(snapshots.values_list("pk", flat=True))
    if not unread or restores.exists():
        return
    last = ClientReading.objects.filter(workspace=workspace).first()
    try:
        known = read_client(workspace, before=last)
    except (GatewayError, StepRefused) as error:
        log.warning("client_not_read", workspace_id=workspace.pk, reason=str(error))
        return
    if restores.exists():  # it may have changed the client meanwhile
        return
    with transaction.atomic():
        same = ClientReading.objects.filter(
            pk__in=[last.pk] if last else [], accessed_at=known["accessed_at"]
        )
        reading = same.select_for_update().first() or ClientReading.objects.create(
            workspace=workspace, **known
        )
        snapshots.filter(pk__in=unread).update(reading=reading)


def _reading_before_restore() -> Subquery:
    """Return for a snapshot what the client had at the next restore in place.

    By now the client has what it was restored to.
    """
    kept = WorkspaceSnapshot.objects.filter(
        workspace=OuterRef("workspace"),
        name__startswith=BEFORE_RESTORE,
        reading__isnull=False,
        taken_at__gte=OuterRef("taken_at"),
    )
    return Subquery(kept.order_by("taken_at").values("reading")[:1])
