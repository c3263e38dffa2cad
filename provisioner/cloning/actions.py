"""Clone a workspace, to find out why something fails only in it."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.refusals import AccountNotActive, require_complete
from provisioner.audit_log.actions import record_event
from provisioner.cloning.models import CloningOperation, WorkspaceClone
from provisioner.cloning.refusals import CannotSeeSource, SnapshotOfAnother
from provisioner.engine.starting import start_operation
from provisioner.leases.actions.leases import insert_with_usual_lease
from provisioner.lib.names import check_name
from provisioner.limits.admission import check_admission
from provisioner.workspace_snapshots.models import WorkspaceSnapshot
from provisioner.workspaces.actions.making import (
    free_name,
    one_request_at_a_time,
)
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.permissions import (
    can_change_workspace,
    can_clone_workspace,
)
from provisioner.workspaces.purposes import client_type_for
from provisioner.workspaces.queries import workspaces_visible_to
from provisioner.workspaces.refusals import WorkspaceNotReady


def workspace_clone(
    *,
    by: User,
    source: Workspace,
    owner: User | None = None,
    name: str = "",
    snapshot: WorkspaceSnapshot | None = None,
) -> Workspace:
    """Request a clone of a ready workspace, now or as of a snapshot; return it.

    It belongs to who asks, or to an `owner` who may see the source. Whom it was shared
    with for cloning clones it for themselves, as it is now. The source is left alone; a
    snapshot of it stays as long as the clone. While a clone is being made, the same
    request returns it again.

    Raises: NotAllowed, OutOfScope, InvalidRequest, WorkspaceNotReady, CannotSeeSource,
    SnapshotOfAnother, AccountNotActive, AccountIncomplete, NameTaken, LimitReached,
    PurposeNotSupported.
    """
    is_for_oneself = owner in (None, by) and snapshot is None
    can = can_clone_workspace if is_for_oneself else can_change_workspace
    permissions.require(can(by, source))
    if name:
        check_name(name)
    owner = owner or by
    with transaction.atomic():
        one_request_at_a_time(owner)
        source = _locked(source)
        _require_fit(owner, source)
        columns = _of_snapshot(source, snapshot)
        if (
            again := _being_made(owner, source, name=name, columns=columns)
        ) is not None:
            return again
        made = _insert(by=by, owner=owner, source=source, name=name)
        WorkspaceClone.objects.create(workspace=made, source=source, **columns)
        record_event(
            made,
            kind="workspace_requested",
            message=f"Requested a clone of {source.name}.",
            actor=by,
        )
        record_event(
            source,
            kind="clone_requested",
            message=f"Requested the clone {made.name} of it for {owner.username}.",
            actor=by,
        )
        start_operation(CloningOperation.CLONE, by=by, about=made)
    return made


def _locked(source: Workspace) -> Workspace:
    """Lock the workspace to clone, so that it is not retired meanwhile.

    Raises: WorkspaceNotReady.
    """
    locked = Workspace.objects.select_for_update(of=("self",), no_key=True)
    row = locked.select_related("site", "template", "snapshot").get(pk=source.pk)
    if row.state != Workspace.State.READY:
        state = row.get_state_display().lower()
        raise WorkspaceNotReady(name=row.name, state=state)
    return row


def _require_fit(owner: User, source: Workspace) -> None:
    """Refuse an owner who may not see the source, or own files."""
    if not owner.is_active:
        raise AccountNotActive(username=owner.username)
    if not workspaces_visible_to(owner).filter(pk=source.pk).exists():
        raise CannotSeeSource(username=owner.username, name=source.name)
    require_complete(owner)


def _being_made(
    owner: User, source: Workspace, *, name: str, columns: dict[str, Any]
) -> Workspace | None:
    """Return the clone that an identical request began to make, or None."""
    making = WorkspaceClone.objects.filter(
        source=source,
        workspace__owner=owner,
        workspace__state=Workspace.State.PROVISIONING,
    )
    if name:
        making = making.filter(workspace__name=name)
    if columns:
        making = making.filter(snapshot_name=columns["snapshot_name"])
    else:
        making = making.filter(has_own_snapshot=True)
    first = making.select_related("workspace").first()
    return first.workspace if first else None


def _of_snapshot(
    source: Workspace, snapshot: WorkspaceSnapshot | None
) -> dict[str, Any]:
    """Return the columns of a clone of an earlier snapshot; none for one of its own.

    Raises: SnapshotOfAnother.
    """
    if snapshot is None:
        return {}
    there = WorkspaceSnapshot.objects.filter(pk=snapshot.pk, workspace=source)
    row = there.select_related("reading").first()
    if row is None:
        raise SnapshotOfAnother(name=source.name)
    columns = {
        "has_own_snapshot": False,
        "snapshot_name": row.name,
        "taken_at": row.taken_at,
    }
    if row.reading is None:
        return columns
    return {
        **columns,
        "recorded_at": row.reading.read_at,
        "opened": row.reading.opened,
        "descriptions": row.reading.descriptions,
        "have_differences": row.reading.have_differences,
    }


def _insert(*, by: User, owner: User, source: Workspace, name: str) -> Workspace:
    site, template = source.site, source.template
    permissions.require_in_scope(by, template=template, purpose=source.purpose)
    asker = by if by.pk == owner.pk else owner
    check_admission(
        by=asker,
        template=template,
        snapshot=source.snapshot,
        site=site,
        purpose=source.purpose,
    )
    return insert_with_usual_lease(
        by=asker,
        owner=owner,
        token=asker.token,
        template=template,
        snapshot=source.snapshot,
        site=site,
        name=name or free_name(owner=owner, template=template, site=site),
        purpose=source.purpose,
        cloned_from=source.volume_name,
        client_type=client_type_for(source.purpose, site=site, owner=owner),
    )
