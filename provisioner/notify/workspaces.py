"""Mails about workspaces, as rows in an outbox.

A row is written in the transaction of its reason. `sweeps/mails.py` claims it, checks
it again under its lock, and sends or voids it. Mails about templates are planned in
`notify/templates.py`.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db.models import Q, QuerySet

from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Operation
from provisioner.notify import templates
from provisioner.notify.channels import Channel, channels_for
from provisioner.notify.models import Notification
from provisioner.workspaces.models import LEASED, Workspace

SUPERSEDED = "A later mail about the same deadline was due."

STILL_TRUE_IN = {
    Notification.Kind.WORKSPACE_READY: (Workspace.State.READY,),
    Notification.Kind.WORKSPACE_FAILED: (Workspace.State.FAILED,),
    Notification.Kind.LEASE_ENDS: LEASED,
    Notification.Kind.TRASHED: (Workspace.State.TRASHED,),
    Notification.Kind.RETIRE_FAILED: (Workspace.State.READY, Workspace.State.FAILED),
    Notification.Kind.ABANDONED: (Workspace.State.READY,),
    Notification.Kind.SNAPSHOT_WITHDRAWN: LEASED,
    Notification.Kind.VOLUME_FILLS: LEASED,
    Notification.Kind.RESTORED_IN_PART: LEASED,
}
"""The states of a workspace in which a planned mail is still true."""

OF_PROVISIONING = {
    "workspace_ready": Notification.Kind.WORKSPACE_READY,
    "workspace_claimed": Notification.Kind.WORKSPACE_READY,
    "workspace_failed": Notification.Kind.WORKSPACE_FAILED,
}


def say(
    workspace: Workspace,
    kind: Notification.Kind,
    *,
    due_at: dt.datetime,
    deadline_at: dt.datetime | None,
    seconds_before: int = 0,
    operation: Operation | None = None,
    is_for_lease: bool = False,
    data: dict[str, Any] | None = None,
) -> Notification:
    """Plan a mail. A repeated call finds the same row, which is never sent twice.

    A mail that was voided and never sent becomes due again.
    """
    fields = {
        "due_at": due_at,
        "operation": operation,
        "is_for_lease": is_for_lease,
        "data": data or {},
    }
    notice, is_new = Notification.objects.get_or_create(
        workspace=workspace,
        kind=kind,
        deadline_at=deadline_at,
        seconds_before=seconds_before,
        defaults=fields,
    )
    if not is_new:
        Notification.objects.filter(
            pk=notice.pk, claimed_at__isnull=True, voided_at__isnull=False
        ).update(**fields, voided_at=None, void_reason="", attempts=0, retry_at=None)
    return notice


def say_provisioned(event: Event, workspace: Workspace) -> None:
    """Mail the owner, if they want it, that a workspace is ready or failed.

    Only the first time: a refused retirement also makes a workspace ready again, and
    later failures are not about provisioning.
    """
    kind = OF_PROVISIONING.get(event.kind)
    owner = workspace.owner
    if kind is None or workspace.is_pooled or owner.is_service:
        return
    if event.kind != "workspace_claimed" and _was_handed_over_before(event, workspace):
        return
    if Channel.MAIL in channels_for(owner, kind):
        say(workspace, kind, due_at=event.at, deadline_at=event.at)


def say_restored_in_part(event: Event, workspace: Workspace) -> None:
    """Mail the owner, if they want it, that a restore could not write some files."""
    kind, owner = Notification.Kind.RESTORED_IN_PART, workspace.owner
    if event.kind != "snapshot_restored_in_part" or owner.is_service:
        return
    if Channel.MAIL in channels_for(owner, kind):
        data = {"reasons": [event.message]}
        say(workspace, kind, due_at=event.at, deadline_at=event.at, data=data)


def _was_handed_over_before(event: Event, workspace: Workspace) -> bool:
    handed_over = ("workspace_ready", "workspace_claimed")
    return workspace.events.filter(kind__in=handed_over).exclude(pk=event.pk).exists()


def say_withdrawn(snapshot: Snapshot, *, now: dt.datetime) -> None:
    """Mail everyone with a workspace of a withdrawn snapshot."""
    theirs = Workspace.objects.filter(
        snapshot=snapshot,
        is_pooled=False,
        state__in=STILL_TRUE_IN[Notification.Kind.SNAPSHOT_WITHDRAWN],
        owner__is_service=False,
    )
    for workspace in theirs:
        kind = Notification.Kind.SNAPSHOT_WITHDRAWN
        say(workspace, kind, due_at=now, deadline_at=None)


def unsent(workspace: Workspace) -> QuerySet[Notification]:
    """Return the planned mails that are neither claimed nor voided."""
    return workspace.notices.filter(claimed_at__isnull=True, voided_at__isnull=True)


def due(now: dt.datetime) -> QuerySet[Notification]:
    """Return the mails to send now that have an address, longest overdue first."""
    is_not_paused = Q(retry_at__isnull=True) | Q(retry_at__lte=now)
    return Notification.objects.filter(
        is_not_paused,
        Q(p4_user="") | ~Q(address=""),
        claimed_at__isnull=True,
        voided_at__isnull=True,
        due_at__lte=now,
    ).order_by("due_at", "pk")


def without_address() -> QuerySet[Notification]:
    """Return the mails that wait for an address from Perforce."""
    return Notification.objects.filter(
        address="", claimed_at__isnull=True, voided_at__isnull=True
    ).exclude(p4_user="")


def why_not(notice: Notification, *, now: dt.datetime) -> str:
    """Return why a mail must not be sent any more, or "".

    Call it with the mail's workspace or template locked, or the answer may be stale.
    """
    if notice.server is not None:
        return ""
    if notice.workspace is None:
        return templates.why_not(notice)
    workspace = notice.workspace
    if workspace.state not in STILL_TRUE_IN[Notification.Kind(notice.kind)]:
        return f"The workspace is {workspace.get_state_display().lower()}."
    if notice.kind == Notification.Kind.LEASE_ENDS:
        if workspace.expires_at != notice.deadline_at:
            return "The deadline moved."
        if _a_later_one_is_due(notice, now=now):
            return SUPERSEDED
    if notice.kind == Notification.Kind.TRASHED and (
        workspace.purge_at != notice.deadline_at
        or (workspace.purge_at is not None and workspace.purge_at <= now)
    ):
        return "It can no longer be restored until then."
    if notice.kind == Notification.Kind.RETIRE_FAILED:
        last = workspace.operations.first()
        if last is None or last.pk != notice.operation_id:
            return "Another operation was requested since."
        if notice.is_for_lease and workspace.expires_at != notice.deadline_at:
            return "The deadline moved."
    return ""


def _a_later_one_is_due(notice: Notification, *, now: dt.datetime) -> bool:
    return Notification.objects.filter(
        workspace=notice.workspace,
        kind=notice.kind,
        deadline_at=notice.deadline_at,
        seconds_before__lt=notice.seconds_before,
        due_at__lte=now,
        voided_at__isnull=True,
    ).exists()


def is_too_late(notice: Notification, *, now: dt.datetime) -> bool:
    """Return whether a lease's warning is too late, as the lease has ended."""
    if notice.kind != Notification.Kind.LEASE_ENDS or notice.workspace is None:
        return False
    ends_at = notice.workspace.expires_at
    return ends_at is not None and ends_at <= now


def unspoken_warnings(workspace: Workspace) -> list[Notification]:
    """Return the warnings about the current deadline if none was sent yet.

    Empty if one was sent or could not be delivered, or none was planned.
    """
    about = workspace.notices.filter(
        kind=Notification.Kind.LEASE_ENDS, deadline_at=workspace.expires_at
    )
    if about.filter(claimed_at__isnull=False).exists():
        return []
    return list(about.filter(voided_at__isnull=True))


def plan_notification_of(operation: Operation, *, now: dt.datetime) -> None:
    """Plan the mail about an ended retirement that its owner did not request.

    Safe to repeat: the same operation gives the same row.
    """
    workspace = operation.subject.workspace
    assert workspace is not None
    owner = workspace.owner
    if owner.is_service or operation.requested_by_id == owner.pk:
        return
    if workspace.state == Workspace.State.TRASHED:
        say(
            workspace,
            Notification.Kind.TRASHED,
            due_at=now,
            deadline_at=workspace.purge_at,
            operation=operation,
        )
    elif operation.state in (Operation.State.FAILED, Operation.State.REFUSED):
        ends_at = workspace.expires_at
        is_for_lease = ends_at is not None and ends_at <= operation.created_at
        say(
            workspace,
            Notification.Kind.RETIRE_FAILED,
            due_at=now,
            # Once per lease, however often it is retried.
            deadline_at=ends_at if is_for_lease else operation.created_at,
            operation=operation,
            is_for_lease=is_for_lease,
        )
