"""Mails about workspaces, as rows: planned with their reason, sent later.

An outbox: a row is written in the transaction that makes it true. `sweeps/mails.py`
claims it, checks it again under its lock, and sends or voids it. Mails about templates
are planned in `notify/templates.py`.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db.models import Q, QuerySet

from provisioner.audit_log.models import Event
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
}
"""The states of a workspace in which a mail can still hold."""

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
    data: dict[str, Any] | None = None,
) -> Notification:
    """Plan a mail, once: the same again is the same row, and never sent twice.

    One that was voided before anybody sent it is due again.
    """
    notice, is_new = Notification.objects.get_or_create(
        workspace=workspace,
        kind=kind,
        deadline_at=deadline_at,
        seconds_before=seconds_before,
        defaults={"due_at": due_at, "data": data or {}},
    )
    if not is_new:
        Notification.objects.filter(
            pk=notice.pk, claimed_at__isnull=True, voided_at__isnull=False
        ).update(
            voided_at=None,
            void_reason="",
            due_at=due_at,
            data=data or {},
            attempts=0,
            retry_at=None,
        )
    return notice


def say_provisioned(event: Event, workspace: Workspace) -> None:
    """Tell an owner who wants it that a workspace is ready, or that it failed.

    Once it was ready, a refused retirement makes it so again, and what fails later is
    no longer its provisioning.
    """
    kind = OF_PROVISIONING.get(event.kind)
    owner = workspace.owner
    if kind is None or workspace.is_pooled or owner.is_service:
        return
    if event.kind != "workspace_claimed" and _was_handed_over_before(event, workspace):
        return
    if Channel.MAIL in channels_for(owner, kind):
        say(workspace, kind, due_at=event.at, deadline_at=event.at)


def _was_handed_over_before(event: Event, workspace: Workspace) -> bool:
    handed_over = ("workspace_ready", "workspace_claimed")
    return workspace.events.filter(kind__in=handed_over).exclude(pk=event.pk).exists()


def say_withdrawn(snapshot_id: int, *, now: dt.datetime) -> None:
    """Tell the people who have a workspace of a snapshot that it was withdrawn."""
    theirs = Workspace.objects.filter(
        snapshot=snapshot_id,
        is_pooled=False,
        state__in=STILL_TRUE_IN[Notification.Kind.SNAPSHOT_WITHDRAWN],
        owner__is_service=False,
    )
    for workspace in theirs:
        kind = Notification.Kind.SNAPSHOT_WITHDRAWN
        say(workspace, kind, due_at=now, deadline_at=None)


def unsent(workspace: Workspace) -> QuerySet[Notification]:
    """Return what is planned and neither claimed nor voided."""
    return workspace.notices.filter(claimed_at__isnull=True, voided_at__isnull=True)


def due(now: dt.datetime) -> QuerySet[Notification]:
    """Return what should go out now and has an address, the longest due first."""
    is_not_paused = Q(retry_at__isnull=True) | Q(retry_at__lte=now)
    return Notification.objects.filter(
        is_not_paused,
        Q(p4_user="") | ~Q(address=""),
        claimed_at__isnull=True,
        voided_at__isnull=True,
        due_at__lte=now,
    ).order_by("due_at", "pk")


def without_address() -> QuerySet[Notification]:
    """Return what waits until Perforce has said where its user gets mail."""
    return Notification.objects.filter(
        address="", claimed_at__isnull=True, voided_at__isnull=True
    ).exclude(p4_user="")


def why_not(notice: Notification, *, now: dt.datetime) -> str:
    """Return why a mail must not go out any more, "" where it still says the truth.

    What it is about has to be locked, or the answer is old before it is read.
    """
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
        return "It cannot be restored until then any more."
    if notice.kind == Notification.Kind.RETIRE_FAILED:
        last = workspace.operations.first()
        if last is None or last.pk != notice.data.get("operation"):
            return "Something else was asked for since."
        if notice.data.get("lease") and workspace.expires_at != notice.deadline_at:
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
    """Return whether a warning would be too late; the sweep of leases decides."""
    if notice.kind != Notification.Kind.LEASE_ENDS or notice.workspace is None:
        return False
    ends_at = notice.workspace.expires_at
    return ends_at is not None and ends_at <= now


def unspoken_warnings(workspace: Workspace) -> list[Notification]:
    """Return the mails about its present deadline if none of them was sent.

    Empty if one was sent, could not be delivered, or none was planned.
    """
    about = workspace.notices.filter(
        kind=Notification.Kind.LEASE_ENDS, deadline_at=workspace.expires_at
    )
    if about.filter(claimed_at__isnull=False).exists():
        return []
    return list(about.filter(voided_at__isnull=True))


def plan_notification_of(operation: Operation, *, now: dt.datetime) -> None:
    """Plan the mail about a retirement that its owner did not ask for, once it ended.

    Safe to repeat: the same operation gives the same row.
    """
    workspace = operation.subject.workspace
    assert workspace is not None
    owner = workspace.owner
    if owner.is_service or operation.requested_by_id == owner.pk:
        return
    data: dict[str, Any] = {"operation": operation.pk}
    if workspace.state == Workspace.State.TRASHED:
        say(
            workspace,
            Notification.Kind.TRASHED,
            due_at=now,
            deadline_at=workspace.purge_at,
            data=data,
        )
    elif operation.state in (Operation.State.FAILED, Operation.State.REFUSED):
        ends_at = workspace.expires_at
        is_for_lease = ends_at is not None and ends_at <= operation.created_at
        say(
            workspace,
            Notification.Kind.RETIRE_FAILED,
            due_at=now,
            # Once for a lease, however often it is tried.
            deadline_at=ends_at if is_for_lease else operation.created_at,
            data={**data, "lease": is_for_lease},
        )
