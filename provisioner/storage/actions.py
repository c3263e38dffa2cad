"""Split clones, free space by a plan, limit traffic, and set up volumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.catalog.models import Snapshot, Template, VolumePolicy
from provisioner.catalog.sweeps.retention import prune_template
from provisioner.engine.deferring import defer_once
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.engine.states import cancel_operation
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused
from provisioner.sites.models import Ceiling, Site
from provisioner.storage.freeing import PlannedAct, space_plan
from provisioner.storage.models import Split, SplitPolicy
from provisioner.storage.obstacles import (
    require_permission,
    require_splittable,
    running_operation,
)
from provisioner.storage.planning import Kind
from provisioner.storage.refusals import NoSplitToStop, PlanStale
from provisioner.storage.tasks import keep_ceilings_soon, keep_volume_policies_soon
from provisioner.workspaces.actions.retiring import locked, workspace_retire
from provisioner.workspaces.models import (
    Unsubmitted,
    Workspace,
    WorkspaceOperation,
)


def workspace_split(*, by: User, workspace: Workspace, reason: str = "") -> Operation:
    """Begin to make a workspace independent of its snapshot.

    It stays as it is for those who work in it. A repeated call meanwhile returns the
    running operation; after a stop or a failure it goes on.

    Raises: NotAllowed, SplitNotAllowed, AlreadyIndependent, WorkspaceNotReady,
    NoRoomToSplit.
    """
    require_permission(by, workspace)
    with transaction.atomic():
        workspace = locked(workspace)
        require_splittable(workspace)
        running = running_operation(workspace)
        if running is not None:
            return running
        record_event(
            workspace,
            kind="split_requested",
            message=f"Requested to split it from {workspace.snapshot.name}.",
            reason=reason,
            actor=by,
        )
        operation = start_operation(WorkspaceOperation.SPLIT, by=by, about=workspace)
        Split.objects.create(workspace=workspace, operation=operation)
    return operation


def workspace_split_stop(*, by: User, workspace: Workspace) -> Operation:
    """Begin to stop the split of a workspace. What was copied stays copied.

    A repeated call returns the running operation.

    Raises: NotAllowed, SplitNotAllowed, NoSplitToStop.
    """
    require_permission(by, workspace)
    with transaction.atomic():
        workspace = locked(workspace)
        running = running_operation(workspace)
        if running is not None and running.kind == WorkspaceOperation.STOP_SPLIT:
            return running
        if running is None or running.kind != WorkspaceOperation.SPLIT:
            raise NoSplitToStop(name=workspace.name)
        cancel_operation(running, message=f"{by} stopped the split.")
        record_event(
            workspace,
            kind="split_stop_requested",
            message="Requested to stop its split.",
            actor=by,
        )
        return start_operation(WorkspaceOperation.STOP_SPLIT, by=by, about=workspace)


def split_policy_save(*, by: User, site: Site, **settings: Any) -> SplitPolicy:
    """Change who may split at a site, and what is split by itself.

    `settings` are the columns `owners_may_split`, `splits_by_itself`,
    `older_than_days` and `pinned_bytes`.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        policy, _ = SplitPolicy.objects.select_for_update().get_or_create(site=site)
        before = {name: getattr(policy, name) for name in settings}
        changes = changes_between(before, settings)
        if changes:
            SplitPolicy.objects.filter(pk=policy.pk).update(**settings)
            record_event(
                site,
                kind="split_policy_changed",
                message="Policy of splits changed.",
                actor=by,
                data=changes,
            )
    policy.refresh_from_db()
    return policy


def ceiling_save(
    *,
    by: User,
    site: Site,
    purpose: str,
    max_iops: int | None,
    max_mbps: int | None,
    is_shared: bool = False,
) -> Ceiling:
    """Limit the traffic of a site's volumes of one purpose; without limits, end that.

    A worker applies it in ONTAP, within minutes. With `is_shared` all volumes have the
    limits together.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    wanted: dict[str, Any] = {
        "max_iops": max_iops,
        "max_mbps": max_mbps,
        "is_shared": is_shared,
    }
    with transaction.atomic():
        ceiling, _ = Ceiling.objects.select_for_update().get_or_create(
            site=site, purpose=purpose
        )
        before = {name: getattr(ceiling, name) for name in wanted}
        changes = changes_between(before, wanted)
        if changes:
            Ceiling.objects.filter(pk=ceiling.pk).update(**wanted)
            record_event(
                site,
                kind="ceiling_changed",
                message=f"Ceiling changed: {ceiling.get_purpose_display()}.",
                actor=by,
                data=changes,
            )
        keep_ceilings_soon(site.pk)
    ceiling.refresh_from_db()
    return ceiling


def volume_policy_save(
    *, by: User, site: Site, template: Template | None = None, **settings: Any
) -> VolumePolicy:
    """Change the settings of templates' volumes at a site, or of one template's.

    `settings` are `VOLUME_SETTINGS`; empty ones are as the site's defaults say, or as
    they are in ONTAP. A worker applies the rest within minutes.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        policy, _ = VolumePolicy.objects.select_for_update().get_or_create(
            site=site, template=template
        )
        before = {name: getattr(policy, name) for name in settings}
        if changes := changes_between(before, settings):
            rows = VolumePolicy.objects.filter(pk=policy.pk)
            rows.update(**settings, applied_at=None)
            record_event(
                template or site,
                kind="volume_policy_changed",
                message="Settings of its volume changed."
                if template
                else "Settings of templates' volumes changed.",
                actor=by,
                data=changes,
            )
        keep_volume_policies_soon(site.pk)
    policy.refresh_from_db()
    return policy


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one act of a plan; with a `code` it was refused."""

    act: PlannedAct
    sentence: str
    code: str = ""


def free_space(
    *,
    by: User,
    site: Site,
    wanted_bytes: int,
    seal: str,
    includes_work: bool = False,
) -> list[Outcome]:
    """Request each act of the plan that was shown; each passes its own checks.

    Unsubmitted work stops a retirement; with `includes_work` it is rescued.

    Raises: NotAllowed, PlanStale (the plan has changed).
    """
    shown = space_plan(
        by,
        site=site,
        wanted_bytes=wanted_bytes,
        now=clocks.database_now(),
        includes_work=includes_work,
    )
    if shown.seal != seal:
        raise PlanStale
    unsubmitted = Unsubmitted.RESCUE if includes_work else Unsubmitted.REFUSE
    return [_request(act, by=by, unsubmitted=unsubmitted) for act in shown.acts]


def _request(planned: PlannedAct, *, by: User, unsubmitted: str) -> Outcome:
    row = planned.row
    try:
        if isinstance(row, Snapshot):
            name = f"prune_template.{row.template_id}"
            job = prune_template.configure(queueing_lock=name, lock=name)
            defer_once(job, template_id=row.template_id)
            return Outcome(act=planned, sentence="It is deleted within minutes.")
        if planned.act.kind is Kind.SPLIT:
            workspace_split(by=by, workspace=row)
            return Outcome(act=planned, sentence="It is being split.")
        workspace_retire(
            by=by,
            workspace=row,
            unsubmitted=unsubmitted,
            reason=f"Requested its retirement to free space. {planned.why}",
        )
        return Outcome(act=planned, sentence="It is being retired.")
    except ActionRefused as refusal:
        return Outcome(act=planned, sentence=refusal.sentence, code=refusal.code)
