"""Change policies of snapshots; compare, take back from and restore to a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.forms import model_to_dict

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.lib.inner_paths import inner_path
from provisioner.lib.refusals import InvalidRequest
from provisioner.sites.models import Site
from provisioner.workspace_snapshots.models import (
    MOST_DAILY,
    MOST_HOURLY,
    MOST_PERCENT,
    SnapshotParameters,
    SnapshotPolicy,
    WorkspaceSnapshot,
)
from provisioner.workspace_snapshots.overviews import failed_paths, snapshot_work
from provisioner.workspace_snapshots.refusals import (
    ClientNotRecorded,
    NothingFailed,
    SnapshotsHidden,
)
from provisioner.workspaces.actions.retiring import locked
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.refusals import WorkspaceNotReady


def snapshot_policy_save(
    *,
    by: User,
    site: Site,
    template: Template | None = None,
    purpose: str = "",
    hourly: int | None = None,
    daily: int | None = None,
    max_percent: int | None = None,
) -> SnapshotPolicy:
    """Set how many snapshots are kept of a site's workspaces, or of some of them.

    What is None stays as it is; a new policy gets the defaults of `SnapshotPolicy`.
    Beyond `max_percent` of a workspace's volume its oldest are deleted; 0: no limit. A
    sweep applies all of it within minutes. Snapshots that were taken before go with the
    clone, or as the new policy says.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_administer(by))
    for field, count, most in (
        ("hourly", hourly, MOST_HOURLY),
        ("daily", daily, MOST_DAILY),
    ):
        if count is not None and not 0 <= count <= most:
            raise InvalidRequest.at(field, f"Keep 0 to {most}.")
    if max_percent is not None and not 0 <= max_percent <= MOST_PERCENT:
        raise InvalidRequest.at("max_percent", f"Allow 1 to {MOST_PERCENT} %, or 0.")
    key: dict[str, Any] = {"site": site, "template": template, "purpose": purpose}
    asked = {"hourly": hourly, "daily": daily, "max_percent": max_percent}
    with transaction.atomic():
        rows = SnapshotPolicy.objects.select_for_update().filter(**key).order_by()
        before = rows.values(*asked).first()
        usual = before or model_to_dict(SnapshotPolicy(), asked)
        settings: dict[str, int] = {
            name: usual[name] if value is None else value
            for name, value in asked.items()
        }
        policy, _ = SnapshotPolicy.objects.update_or_create(**key, defaults=settings)
        changes = changes_between(before or dict.fromkeys(settings), settings)
        if changes:
            percent = policy.max_percent
            bound = f", up to {percent} % of the volume" if percent else ""
            record_event(
                site,
                kind="snapshot_policy_changed",
                message=f"{policy}: {policy.hourly} hourly and {policy.daily} daily "
                f"ones are kept{bound}.",
                actor=by,
                data=changes,
            )
    return policy


def snapshot_policy_delete(*, by: User, policy: SnapshotPolicy) -> None:
    """Delete a policy; a more general one counts then, or none. Safe to repeat.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        deleted, _ = SnapshotPolicy.objects.filter(pk=policy.pk).delete()
        if deleted:
            record_event(
                policy.site,
                kind="snapshot_policy_deleted",
                message=f"{policy}: the policy was deleted.",
                actor=by,
            )


def snapshot_compare(*, by: User, snapshot: WorkspaceSnapshot) -> Operation:
    """Begin to list what changed in a workspace since a snapshot. Nothing is touched.

    A repeated call meanwhile returns the running operation.

    Raises: NotAllowed, SnapshotsHidden, WorkspaceNotReady.
    """
    return _begin(WorkspaceOperation.COMPARE, by=by, snapshot=snapshot)


def snapshot_take_back(
    *, by: User, snapshot: WorkspaceSnapshot, path: str
) -> Operation:
    """Begin to copy a file, or what a directory has, from a snapshot into a workspace.

    `path` is relative to the root. What differs there is renamed first. A repeated call
    meanwhile returns the running operation.

    Raises: NotAllowed, InvalidRequest, SnapshotsHidden, WorkspaceNotReady.
    """
    permissions.require(can_change_workspace(by, snapshot.workspace))
    try:
        path = inner_path(path)
    except ValueError as error:
        raise InvalidRequest.at("path", str(error)) from error
    return _begin(WorkspaceOperation.TAKE_BACK, by=by, snapshot=snapshot, path=path)


def snapshot_retry(*, by: User, snapshot: WorkspaceSnapshot) -> Operation:
    """Begin to take back what the last restore, or taking back, could not write.

    What differs there now is renamed first. A repeated call meanwhile returns the
    running operation.

    Raises: NotAllowed, NothingFailed, SnapshotsHidden, WorkspaceNotReady.
    """
    permissions.require(can_change_workspace(by, snapshot.workspace))
    work = snapshot_work(snapshot)
    if work.running is not None:
        return work.running
    paths = failed_paths(work.restored, work.taken)
    if not paths:
        raise NothingFailed()
    return _begin(WorkspaceOperation.TAKE_BACK, by=by, snapshot=snapshot, paths=paths)


def snapshot_restore(*, by: User, snapshot: WorkspaceSnapshot) -> Operation:
    """Begin to make a workspace what it was at a snapshot, in place.

    Its newer state is kept as a snapshot first. The operation is refused while files
    are opened. A repeated call meanwhile returns the running operation.

    Raises: NotAllowed, SnapshotsHidden, ClientNotRecorded, WorkspaceNotReady.
    """
    permissions.require(can_change_workspace(by, snapshot.workspace))
    if snapshot.workspace.client_name and snapshot.reading_id is None:
        raise ClientNotRecorded()
    return _begin(WorkspaceOperation.RESTORE_SNAPSHOT, by=by, snapshot=snapshot)


def _begin(
    kind: WorkspaceOperation,
    *,
    by: User,
    snapshot: WorkspaceSnapshot,
    path: str = "",
    paths: Sequence[str] = (),
) -> Operation:
    workspace = snapshot.workspace
    what = f"{len(paths):,} that failed" if paths else path
    permissions.require(can_change_workspace(by, workspace))
    asked = SnapshotParameters(snapshot=snapshot.name, path=path, paths=paths)
    if not workspace.site.shows_snapshots:
        raise SnapshotsHidden(site=workspace.site.name)
    with transaction.atomic():
        workspace = locked(workspace)
        if workspace.state != Workspace.State.READY:
            state = workspace.get_state_display().lower()
            raise WorkspaceNotReady(name=workspace.name, state=state)
        running = workspace.operations.filter(state=Operation.State.RUNNING).first()
        if running is not None and (running.kind, running.parameters) != (
            kind,
            asked.as_json(),
        ):
            raise WorkspaceNotReady(name=workspace.name, state="busy")
        if running is not None:
            return running
        if kind != WorkspaceOperation.COMPARE:
            record_event(
                workspace,
                kind=f"{kind}_requested",
                message=f"{kind.label} {snapshot.name} requested{what and ': '}{what}.",
                actor=by,
            )
        return start_operation(kind, by=by, about=workspace, parameters=asked)
