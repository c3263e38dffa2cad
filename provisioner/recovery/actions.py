"""Restore a workspace from a copy at another site."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.refusals import require_complete
from provisioner.audit_log.actions import record_event
from provisioner.copies.models import CopiedSnapshot, WorkspaceCopy
from provisioner.copies.queries import last_arrived
from provisioner.engine.starting import start_operation
from provisioner.leases.actions.leases import insert_with_usual_lease
from provisioner.lib.names import check_name
from provisioner.limits.admission import check_admission
from provisioner.recovery.models import Recovery, RecoveryOperation
from provisioner.recovery.queries import answers, recovered_before
from provisioner.recovery.refusals import CopyGoes, NothingCopied, OriginalAnswers
from provisioner.workspaces.actions.making import free_name
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.purposes import client_type_for

_GOING = (WorkspaceCopy.State.DELETING, WorkspaceCopy.State.DELETED)


def workspace_recover(
    *, by: User, copy: WorkspaceCopy, name: str = "", is_stopped: bool = False
) -> Workspace:
    """Request a workspace at a copy's site with what arrived there last; return it.

    It belongs to the owner of the original, which is left alone. While the original's
    site answers, only an administrator may, who confirms with `is_stopped` that nobody
    works in the original. A repeated call for the same snapshot returns the same
    workspace.

    Raises: NotAllowed, OutOfScope, InvalidRequest, OriginalAnswers, NothingCopied,
    CopyGoes, AccountIncomplete, NameTaken, LimitReached, PurposeNotSupported.
    """
    source = copy.workspace
    permissions.require(can_change_workspace(by, source))
    if name:
        check_name(name)
    may_confirm = permissions.can_administer(by) and is_stopped
    if not may_confirm and answers(source.site):
        raise OriginalAnswers(site=source.site.name, name=source.name)
    with transaction.atomic():
        copied = _locked(copy)
        made = recovered_before(source, snapshot_name=copied.name)
        if made is not None:
            return made
        made = _insert(by=by, copy=copy, name=name)
        assert copied.taken_at is not None
        Recovery.objects.create(
            workspace=made,
            source=source,
            copy=copy,
            snapshot_name=copied.name,
            taken_at=copied.taken_at,
            opened=copied.opened,
            descriptions=copied.descriptions,
            have_differences=copied.have_differences,
        )
        record_event(
            made,
            kind="workspace_requested",
            message=f"Requested what {source.name} of {source.site.name} was at "
            f"{copied.taken_at:%Y-%m-%d %H:%M} UTC.",
            actor=by,
        )
        record_event(
            source,
            kind="recovery_requested",
            message=f"Requested to restore it at {copy.site.name} as {made.name}.",
            actor=by,
        )
        start_operation(RecoveryOperation.RECOVER, by=by, about=made)
    return made


def _locked(copy: WorkspaceCopy) -> CopiedSnapshot:
    """Lock a copy, and return what arrived last.

    Raises: CopyGoes, NothingCopied.
    """
    locked = WorkspaceCopy.with_deleted.select_for_update(of=("self",))
    row = locked.get(pk=copy.pk)
    named = {"name": copy.workspace.name, "site": copy.site.name}
    if row.state in _GOING or row.is_released:
        raise CopyGoes(**named)
    copied = last_arrived(row)
    if copied is None:
        raise NothingCopied(**named)
    return copied


def _insert(*, by: User, copy: WorkspaceCopy, name: str) -> Workspace:
    source, site = copy.workspace, copy.site
    owner, template, snapshot = source.owner, source.template, source.snapshot
    permissions.require_in_scope(by, template=template, purpose=source.purpose)
    require_complete(owner)
    asker = by if by.pk == owner.pk else owner
    check_admission(
        by=asker,
        template=template,
        snapshot=snapshot,
        site=site,
        purpose=source.purpose,
    )
    taken = Workspace.objects.filter(site=site, name=source.name).there()
    if not name and not taken.exists():
        name = source.name
    return insert_with_usual_lease(
        by=asker,
        owner=owner,
        token=asker.token,
        template=template,
        snapshot=snapshot,
        site=site,
        name=name or free_name(owner=owner, template=template, site=site),
        purpose=source.purpose,
        cloned_from=copy.volume_name,
        client_type=client_type_for(source.purpose, site=site, owner=owner),
    )
