"""Retire workspaces whose lease has ended, and purge those due in the trash.

Each workspace is locked and checked again before it is retired, so an extension in the
last second wins; and each is a transaction of its own.
"""

from __future__ import annotations

import datetime as dt

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from procrastinate.contrib.django import app

from provisioner.accounts.system import system_user
from provisioner.audit_log.actions import record_event
from provisioner.engine.models import Operation
from provisioner.leases import queries
from provisioner.leases.actions.leases import (
    end_lease_of_silent,
    renew_lease,
    set_lease,
)
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused
from provisioner.lib.times import recorded
from provisioner.notify import workspaces
from provisioner.notify.models import Notification
from provisioner.workspaces.actions.retiring import (
    workspace_purge,
    workspace_retire,
    workspace_retry,
)
from provisioner.workspaces.models import Unsubmitted, Workspace, WorkspaceOperation
from provisioner.workspaces.queries import last_operation

log = structlog.get_logger(__name__)

# A retirement that did not work is retried after an hour, two, four … a day.
FIRST_PAUSE = dt.timedelta(hours=1)
LONGEST_PAUSE = dt.timedelta(days=1)
# How far back we look for retirements whose owner has not been told.
NOTIFIED_WITHIN = dt.timedelta(days=30)

ENDING = (Workspace.State.READY, Workspace.State.FAILED)


@app.periodic(cron="* * * * *")
@app.task(name="sweep_leases", queue="sweeps", queueing_lock="sweep_leases")
def sweep_leases(timestamp: int) -> None:
    """Retire expired workspaces, purge the due trash, and notify owners."""
    now = clocks.database_now()
    end_leases_of_silent(now=now)
    retire_expired(now=now)
    purge_expired(now=now)
    tell_owners(now=now)


def end_leases_of_silent(*, now: dt.datetime) -> int:
    """End the leases of workspaces whose jobs missed a heartbeat; return how many."""
    watched = Workspace.objects.filter(
        state__in=ENDING, heartbeat_seconds__isnull=False, keep_reason=""
    )
    silent = [w.pk for w in watched if queries.is_silent(w, now)]
    ended = 0
    for pk in silent:
        with transaction.atomic():
            workspace = _locked(pk)
            is_kept = bool(workspace.keep_reason) or workspace.state not in ENDING
            if is_kept or not queries.is_silent(workspace, now):
                continue  # it was heard, or somebody decided, since it was checked
            end_lease_of_silent(workspace, by=system_user(), now=now)
            ended += 1
    return ended


def retire_expired(*, now: dt.datetime) -> int:
    """Retire workspaces whose lease has ended; return how many."""
    expired = Workspace.objects.filter(state__in=ENDING, expires_at__lte=now)
    retired = 0
    for pk in list(expired.order_by("expires_at").values_list("pk", flat=True)):
        try:
            retired += _end_lease(pk, now=now)
        except ActionRefused as refusal:
            log.warning("lease_not_ended", workspace_id=pk, reason=refusal.sentence)
    return retired


def _end_lease(pk: int, *, now: dt.datetime) -> bool:
    """Retire one workspace, unless something prevents it; return whether it did."""
    with transaction.atomic():
        workspace = _locked(pk)
        expires_at = workspace.expires_at
        if workspace.state not in ENDING or expires_at is None or expires_at > now:
            return False
        if _was_being_purged(workspace):
            return False
        if _was_brought_back(workspace, after=expires_at):
            renew_lease(
                workspace,
                by=system_user(),
                why="It was restored, so its lease starts again.",
            )
            return False
        if not may_try_again(
            workspace, WorkspaceOperation.RETIRE, since=expires_at, now=now
        ):
            return False
        if not _was_warned(workspace, now=now):
            return False
        workspace_retire(
            by=system_user(),
            workspace=workspace,
            unsubmitted=Unsubmitted.RESCUE,
            reason=f"Its lease ended on {recorded(expires_at)}.",
        )
    return True


def _locked(pk: int) -> Workspace:
    return (
        Workspace.objects.select_for_update(of=("self",))
        .select_related("owner", "template", "site")
        .get(pk=pk)
    )


def _was_brought_back(workspace: Workspace, *, after: dt.datetime) -> bool:
    """Return whether somebody requested a restore since, successful or not."""
    return workspace.operations.filter(
        kind=WorkspaceOperation.RESTORE, created_at__gte=after
    ).exists()


def may_try_again(
    workspace: Workspace,
    kind: str,
    *,
    since: dt.datetime,
    now: dt.datetime,
) -> bool:
    """Return whether the pause after failed attempts is over."""
    tried = list(
        workspace.operations.filter(kind=kind, created_at__gte=since).order_by("-id")
    )
    if not tried or tried[0].ended_at is None:
        return True
    pause = min(FIRST_PAUSE * 2 ** min(len(tried) - 1, 10), LONGEST_PAUSE)
    return bool(tried[0].ended_at + pause <= now)


def _was_warned(workspace: Workspace, *, now: dt.datetime) -> bool:
    """Return whether its owner got all planned mails.

    If no worker sent them, the lease continues until the last one was due. While the
    mail server refuses them, the retirement waits.
    """
    unspoken = workspaces.unspoken_warnings(workspace)
    if not unspoken:
        return True
    if any(notice.attempts for notice in unspoken):
        return False
    span = dt.timedelta(seconds=min(notice.seconds_before for notice in unspoken))
    policy = queries.policy_for(workspace.template, workspace.purpose)
    ends_at = now + span
    set_lease(workspace, ends_at=ends_at, policy=policy, now=now)
    record_event(
        workspace,
        kind="lease_postponed",
        message="Nobody could be notified of its end, so its lease continues until "
        f"{recorded(ends_at)}.",
        actor=system_user(),
    )
    return False


def purge_expired(*, now: dt.datetime) -> int:
    """Purge workspaces whose time in the trash is over; return how many.

    The second sweep that finds a workspace due purges it. A failed purge is retried.
    """
    # Whoever marked these had another time, or their stay was prolonged since.
    Workspace.objects.filter(purge_at__gt=now, purge_seen_at__isnull=False).update(
        purge_seen_at=None
    )
    over = Workspace.objects.filter(
        state__in=(Workspace.State.TRASHED, Workspace.State.FAILED), purge_at__lte=now
    )
    purged = 0
    for pk in list(over.order_by("purge_at").values_list("pk", flat=True)):
        try:
            purged += _empty_trash(pk, now=now)
        except ActionRefused as refusal:
            log.warning("trash_not_emptied", workspace_id=pk, reason=refusal.sentence)
    return purged


def _empty_trash(pk: int, *, now: dt.datetime) -> bool:
    """Purge one workspace in the trash, unless it was restored meanwhile."""
    with transaction.atomic():
        workspace = _locked(pk)
        purge_at = workspace.purge_at
        if purge_at is None or purge_at > now:
            return False
        if workspace.state == Workspace.State.TRASHED:
            if not _was_due_before(workspace, now=now):
                return False
            workspace_purge(by=system_user(), workspace=workspace)
            return True
        if not _was_being_purged(workspace) or not may_try_again(
            workspace, WorkspaceOperation.PURGE, since=purge_at, now=now
        ):
            return False
        workspace_retry(by=system_user(), workspace=workspace)
    return True


def _was_due_before(workspace: Workspace, *, now: dt.datetime) -> bool:
    """Return whether an earlier sweep saw it as due; if not, mark it as seen."""
    if workspace.purge_seen_at is None:
        workspace.purge_seen_at = now
        workspace.save(update_fields=["purge_seen_at"])
    pause = dt.timedelta(seconds=settings.PURGE_CONFIRM_SECONDS)
    return workspace.purge_seen_at + pause <= now


def _was_being_purged(workspace: Workspace) -> bool:
    last = last_operation(workspace)
    return (
        workspace.state == Workspace.State.FAILED
        and last is not None
        and last.kind == WorkspaceOperation.PURGE
    )


def tell_owners(*, now: dt.datetime) -> None:
    """Plan the mails about retirements that owners did not request themselves."""
    ended = (
        Operation.objects.filter(
            kind=WorkspaceOperation.RETIRE,
            ended_at__gt=now - NOTIFIED_WITHIN,
            subject__workspace__state__in=(Workspace.State.TRASHED, *ENDING),
            subject__workspace__is_pooled=False,
        )
        .exclude(requested_by=F("subject__workspace__owner"))
        .exclude(state=Operation.State.CANCELED)
        .order_by("subject_id", "-id")
        .distinct("subject_id")
    )
    told = set(
        Notification.objects.filter(
            kind__in=(Notification.Kind.TRASHED, Notification.Kind.RETIRE_FAILED),
            created_at__gt=now - NOTIFIED_WITHIN,
        ).values_list("operation", flat=True)
    )
    for pk in ended.values_list("pk", flat=True):
        if pk in told:
            continue
        with transaction.atomic():
            operation = Operation.objects.select_related("subject__workspace").get(
                pk=pk
            )
            operation.subject.workspace = _locked(operation.subject.workspace.pk)
            workspaces.plan_notification_of(operation, now=now)
