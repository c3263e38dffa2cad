"""Transfer unsubmitted work to a newer workspace."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.refusals import require_complete
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.leases.actions.leases import insert_with_usual_lease
from provisioner.lib.names import check_name
from provisioner.limits.admission import check_admission
from provisioner.transfer.models import Transfer, TransferOperation
from provisioner.transfer.queries import transfer_under_way
from provisioner.transfer.refusals import (
    NothingGoodNewer,
    NothingNewer,
    NothingToAbort,
    NothingToTransfer,
    OwnerChanged,
)
from provisioner.workspaces.actions.making import free_name, snapshot_to_clone
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Unsubmitted, Workspace
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.queries import default_to_move_to, snapshots_to_move_to
from provisioner.workspaces.refusals import BeingTransferred, WorkspaceNotReady


def workspace_transfer(
    *,
    by: User,
    workspace: Workspace,
    snapshot: Snapshot | None = None,
    name: str = "",
    takes_changed: bool = True,
    takes_untracked: bool = False,
    retires_source: bool = True,
) -> Workspace:
    """Request a newer workspace with the work of this one; return it.

    Without a snapshot it is of the default one. The source is only read; with
    `retires_source` it goes to the trash at the end, unless there are conflicts. A
    repeated call meanwhile returns the same new workspace. It belongs to the owner; a
    scoped token of theirs bounds it and can see it.

    Raises: NotAllowed, OutOfScope, InvalidRequest, BeingTransferred, NothingNewer,
    NothingGoodNewer, NothingToTransfer, WorkspaceNotReady, SnapshotGone,
    AccountIncomplete, OwnerChanged, NameTaken, LimitReached.
    """
    permissions.require(can_change_workspace(by, workspace))
    if name:
        check_name(name)
    with transaction.atomic():
        source = _locked_source(workspace)
        under_way = transfer_under_way(source)
        if under_way is not None:
            made = under_way.workspace
            if not can_change_workspace(by, made):
                raise BeingTransferred(name=source.name, into=made.name)
            return made
        owner, template = source.owner, source.template
        permissions.require_in_scope(by, template=template, purpose=source.purpose)
        _check_account(owner, source)
        site, newer = source.site, _newer_snapshot(source, snapshot)
        snapshot = snapshot_to_clone(template, newer, site=site)
        asker = by if by.pk == owner.pk else owner
        check_admission(
            by=asker,
            template=template,
            snapshot=snapshot,
            site=site,
            purpose=source.purpose,
        )
        made = insert_with_usual_lease(
            by=asker,
            owner=owner,
            token=asker.token,
            template=template,
            snapshot=snapshot,
            site=site,
            name=name or free_name(owner=owner, template=template, site=site),
            purpose=source.purpose,
        )
        Transfer.objects.create(
            workspace=made,
            source=source,
            takes_changed=takes_changed,
            takes_untracked=takes_untracked,
            retires_source=retires_source,
        )
        record_event(
            made,
            kind="workspace_requested",
            message=f"Requested a clone of {template.name} at change "
            f"{snapshot.change}, with the work of {source.name}.",
            actor=by,
        )
        record_event(
            source,
            kind="transfer_requested",
            message=f"Requested to transfer its work into {made.name}.",
            actor=by,
        )
        start_operation(TransferOperation.TRANSFER, by=by, about=made)
    return made


def _locked_source(workspace: Workspace) -> Workspace:
    """Lock a workspace whose work can be transferred.

    Raises: NothingToTransfer, WorkspaceNotReady.
    """
    source = (
        Workspace.objects.select_for_update(of=("self",))
        .select_related(
            "owner", "template__site__perforce_server", "site__perforce_server"
        )
        .get(pk=workspace.pk)
    )
    if source.purpose != Workspace.Purpose.DEVELOPMENT:
        raise NothingToTransfer(name=source.name)
    if source.state != Workspace.State.READY:
        raise WorkspaceNotReady(
            name=source.name, state=source.get_state_display().lower()
        )
    return source


def _check_account(owner: User, source: Workspace) -> None:
    """Refuse if the files of both workspaces would belong to different people."""
    require_complete(owner)
    if (owner.uid, owner.gid) != (source.uid, source.gid):
        raise OwnerChanged(username=owner.username, name=source.name)


def _newer_snapshot(source: Workspace, wanted: Snapshot | None) -> Snapshot:
    """Return the snapshot that work moves to: the wanted one, else the default.

    Raises: NothingNewer, NothingGoodNewer.
    """
    newer = snapshots_to_move_to(source)
    if not (newer.filter(pk=wanted.pk) if wanted else newer).exists():
        raise NothingNewer(name=source.name)
    found = wanted or default_to_move_to(source)
    if found is None:
        raise NothingGoodNewer(name=source.name)
    return found


def workspace_transfer_abort(*, by: User, workspace: Workspace) -> Operation:
    """Request to stop a transfer: retire the new workspace with all copies.

    The source workspace does not change. A repeated call returns the running operation.

    Raises: NotAllowed, NothingToAbort.
    """
    permissions.require(can_change_workspace(by, workspace))
    transfer = getattr(workspace, "transfer", None)
    if transfer is None or not transfer.can_be_aborted:
        raise NothingToAbort(name=workspace.name)
    return workspace_retire(
        by=by,
        workspace=workspace,
        unsubmitted=Unsubmitted.DISCARD,
        purge=True,
        reason="Requested to stop the transfer. The copies are deleted.",
    )
