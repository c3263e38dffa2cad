"""Leases of workspaces: begin, extend, keep and release them."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.catalog.models import Template
from provisioner.leases import queries
from provisioner.leases.refusals import (
    LeaseNotLonger,
    LeaseTooLong,
    NotAllowedToKeep,
    WorkspaceKept,
    WorkspaceNotKept,
)
from provisioner.leases.warnings import plan_first_warnings, plan_warnings
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.times import exact, recorded
from provisioner.workspaces.actions.making import insert_workspace
from provisioner.workspaces.models import LEASED, Workspace
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.refusals import WorkspaceNotReady

LONGEST_REASON = 500
# Fits into an integer of the database.
LONGEST_SECONDS = 50 * 365 * queries.DAY


def end_of_first_lease(
    *,
    by: User,
    policy: queries.Policy,
    lease_seconds: int | None,
    now: dt.datetime,
) -> dt.datetime | None:
    """Return when the lease of a new workspace ends; None if it does not.

    Raises: InvalidRequest, LeaseTooLong.
    """
    if lease_seconds is None:
        return _usual_end(policy.usual_end(now), by=by, now=now)
    return _end_within(policy, now + _span(lease_seconds), by=by, now=now)


def insert_with_usual_lease(
    *, by: User, template: Template, purpose: str, **fields: Any
) -> Workspace:
    """Write the row of a workspace with the usual lease, and plan its mails.

    The current token of `by` bounds the lease. `fields` are those of insert_workspace.

    Raises: NameTaken.
    """
    now, policy = clocks.database_now(), queries.policy_for(template, purpose)
    ends_at = end_of_first_lease(by=by, policy=policy, lease_seconds=None, now=now)
    workspace = insert_workspace(
        template=template, purpose=purpose, expires_at=ends_at, **fields
    )
    plan_first_warnings(workspace, policy, now=now)
    return workspace


def _usual_end(
    ends_at: dt.datetime | None, *, by: User, now: dt.datetime
) -> dt.datetime | None:
    """Return the default end, bounded by the current token."""
    ends = [end for end in (ends_at, permissions.latest_lease(by, now)) if end]
    return min(ends, default=None)


def set_lease(
    workspace: Workspace,
    *,
    ends_at: dt.datetime | None,
    policy: queries.Policy,
    now: dt.datetime,
    keep_reason: str = "",
) -> None:
    """Set the end of a locked workspace and plan its mails again."""
    workspace.expires_at, workspace.keep_reason = ends_at, keep_reason
    Workspace.objects.filter(pk=workspace.pk).update(
        expires_at=ends_at, keep_reason=keep_reason
    )
    plan_warnings(workspace, policy, now=now)


def workspace_extend(
    *,
    by: User,
    workspace: Workspace,
    seconds: int | None = None,
    until: dt.datetime | None = None,
) -> Workspace:
    """Extend a lease: by seconds from now, until a moment, or by the default.

    Counted from now, so that a second click adds nothing. A lease that has ended can be
    extended until the workspace is being retired.

    Raises: NotAllowed, InvalidRequest, WorkspaceNotReady, WorkspaceKept,
    LeaseNotLonger, LeaseTooLong.
    """
    permissions.require(can_change_workspace(by, workspace))
    with transaction.atomic():
        workspace, policy, now = _leased(workspace)
        ends_at = extended_end(
            workspace, policy, now, by=by, seconds=seconds, until=until
        )
        before = workspace.expires_at
        set_lease(workspace, ends_at=ends_at, policy=policy, now=now)
        record_event(
            workspace,
            kind="lease_extended",
            message=f"Extended its lease until {recorded(ends_at)}.",
            actor=by,
            data=end_moved(before, ends_at),
        )
    return workspace


def extended_end(
    workspace: Workspace,
    policy: queries.Policy,
    now: dt.datetime,
    *,
    by: User,
    seconds: int | None = None,
    until: dt.datetime | None = None,
) -> dt.datetime:
    """Return when the lease would end after `workspace_extend`.

    Raises: the same.
    """
    permissions.require(can_change_workspace(by, workspace))
    if seconds is not None and until is not None:
        raise InvalidRequest("Give either a duration or an end.")
    _require_leased(workspace)
    if workspace.keep_reason:
        raise WorkspaceKept(name=workspace.name)
    if until is not None:
        ends_at = _end_within(policy, until, by=by, now=now)
    elif seconds is not None:
        ends_at = _end_within(policy, now + _span(seconds), by=by, now=now)
    else:
        usual = policy.usual_end(now) or policy.latest(now)
        usual = _usual_end(usual, by=by, now=now)
        if usual is None:
            raise LeaseNotLonger(name=workspace.name)
        ends_at = usual
    if workspace.expires_at is None or ends_at <= workspace.expires_at:
        raise LeaseNotLonger(name=workspace.name)
    return ends_at


def workspace_keep(*, by: User, workspace: Workspace, reason: str) -> Workspace:
    """Keep a workspace without an end, for a reason that others can read.

    Where leases have a maximum, only an administrator may; elsewhere its owner may as
    well.

    Raises: NotAllowed, NotAllowedToKeep, InvalidRequest, WorkspaceNotReady.
    """
    permissions.require(can_change_workspace(by, workspace))
    reason = " ".join(reason.split())
    if not reason:
        raise InvalidRequest("Give a reason to keep it. Others will ask.")
    if len(reason) > LONGEST_REASON or "\0" in reason:
        raise InvalidRequest(f"A reason may have up to {LONGEST_REASON} characters.")
    with transaction.atomic():
        workspace, policy, now = _leased(workspace)
        require_keepable(workspace, policy, now, by=by)
        before = workspace.expires_at
        set_lease(workspace, ends_at=None, keep_reason=reason, policy=policy, now=now)
        record_event(
            workspace,
            kind="workspace_kept",
            message="Keeps it without an end.",
            reason=reason,
            actor=by,
            data=end_moved(before, None),
        )
    return workspace


def require_keepable(
    workspace: Workspace, policy: queries.Policy, now: dt.datetime, *, by: User
) -> None:
    """Ensure that `workspace_keep` keeps a workspace, if its reason is good.

    Raises: NotAllowed, NotAllowedToKeep, WorkspaceNotReady.
    """
    permissions.require(can_change_workspace(by, workspace))
    _require_leased(workspace)
    is_bounded = policy.maximum_seconds is not None and not by.is_administrator
    if is_bounded or permissions.latest_lease(by, now) is not None:
        raise NotAllowedToKeep


def workspace_release(*, by: User, workspace: Workspace) -> Workspace:
    """Release a kept workspace, so that it gets the default lease from now.

    If `by` uses a scoped token, that bounds the lease.

    Raises: NotAllowed, WorkspaceNotKept, WorkspaceNotReady.
    """
    permissions.require(can_change_workspace(by, workspace))
    with transaction.atomic():
        workspace, policy, now = _leased(workspace)
        if not workspace.keep_reason:
            raise WorkspaceNotKept(name=workspace.name)
        was_kept_for = workspace.keep_reason
        ends_at = _usual_end(policy.usual_end(now), by=by, now=now)
        set_lease(workspace, ends_at=ends_at, policy=policy, now=now)
        end = recorded(ends_at) if ends_at else "it is retired"
        record_event(
            workspace,
            kind="workspace_released",
            message=f"No longer kept ({was_kept_for}); its lease lasts until {end}.",
            actor=by,
            data=end_moved(None, ends_at),
        )
    return workspace


def end_lease_of_silent(workspace: Workspace, *, by: User, now: dt.datetime) -> None:
    """End the lease of a locked workspace now, as its job has missed its heartbeat.

    No more heartbeats are expected, so if it is extended or restored, it lives as long
    as any other.
    """
    silent_for, before = workspace.heartbeat_seconds, workspace.expires_at
    workspace.heartbeat_seconds = None
    Workspace.objects.filter(pk=workspace.pk).update(heartbeat_seconds=None)
    policy = queries.policy_for(workspace.template, workspace.purpose)
    set_lease(workspace, ends_at=now, policy=policy, now=now)
    record_event(
        workspace,
        kind="heartbeat_missed",
        message=f"Its job sent no heartbeat for {silent_for} seconds: the lease ends.",
        actor=by,
        data=end_moved(before, now),
    )


def renew_lease(workspace: Workspace, *, by: User, why: str) -> Workspace:
    """Give a workspace with an expired lease the default one, with a reason.

    The scoped token that made the workspace bounds it, whoever restored it.
    """
    with transaction.atomic():
        workspace, policy, now = _leased(workspace)
        owner, before = workspace.owner, workspace.expires_at
        owner.token = workspace.token
        ends_at = _usual_end(policy.usual_end(now), by=owner, now=now)
        set_lease(workspace, ends_at=ends_at, policy=policy, now=now)
        record_event(
            workspace,
            kind="lease_renewed",
            message=why,
            actor=by,
            data=end_moved(before, ends_at),
        )
    return workspace


def _leased(
    workspace: Workspace,
) -> tuple[Workspace, queries.Policy, dt.datetime]:
    """Return the locked workspace, its policy, and the database's time.

    Raises: WorkspaceNotReady if its lease does not count.
    """
    workspace = (
        Workspace.objects.select_for_update(of=("self",))
        .select_related("owner", "template", "site")
        .get(pk=workspace.pk)
    )
    _require_leased(workspace)
    policy = queries.policy_for(workspace.template, workspace.purpose)
    return workspace, policy, clocks.database_now()


def _require_leased(workspace: Workspace) -> None:
    if workspace.state not in LEASED:
        raise WorkspaceNotReady(
            name=workspace.name, state=workspace.get_state_display().lower()
        )


def _span(seconds: int) -> dt.timedelta:
    if not 1 <= seconds <= LONGEST_SECONDS:
        raise InvalidRequest(f"A lease lasts from 1 to {LONGEST_SECONDS} seconds.")
    return dt.timedelta(seconds=seconds)


def _end_within(
    policy: queries.Policy, ends_at: dt.datetime, *, by: User, now: dt.datetime
) -> dt.datetime:
    if not now < ends_at <= now + dt.timedelta(seconds=LONGEST_SECONDS):
        raise InvalidRequest(
            "A lease ends in the future, and within "
            f"{LONGEST_SECONDS // queries.DAY:,} days."
        )
    reaches = (policy.latest(now), permissions.latest_lease(by, now))
    latest = min((reach for reach in reaches if reach), default=None)
    if latest is not None and ends_at > latest:
        raise LeaseTooLong(asked=exact(ends_at), latest=exact(latest))
    return ends_at


def end_moved(before: dt.datetime | None, after: dt.datetime | None) -> dict[str, Any]:
    """Return the data of an event that changes the end of a lease."""
    return changes_between(
        {"lease_ends_at": before.isoformat() if before else None},
        {"lease_ends_at": after.isoformat() if after else None},
    )
