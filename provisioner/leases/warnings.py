"""Plan the mails that warn of the end of a lease."""

from __future__ import annotations

import datetime as dt

from provisioner.leases import queries
from provisioner.notify.models import Notification
from provisioner.notify.workspaces import say, unsent
from provisioner.workspaces.models import Workspace


def plan_warnings(
    workspace: Workspace, policy: queries.Policy, *, now: dt.datetime
) -> None:
    """Plan exactly the mails of this workspace's deadline.

    Call it in the transaction that sets or clears `expires_at` or changes the policy:
    mails of an earlier deadline are voided.
    """
    ahead = _ahead(workspace, policy, now=now)
    unsent(workspace).filter(kind=Notification.Kind.LEASE_ENDS, due_at__gt=now).exclude(
        deadline_at=workspace.expires_at,
        seconds_before__in=[moment.seconds_before for moment in ahead],
    ).update(voided_at=now, void_reason="The deadline or its moments changed.")
    unsent(workspace).filter(kind=Notification.Kind.LEASE_ENDS).exclude(
        deadline_at=workspace.expires_at
    ).update(voided_at=now, void_reason="The deadline moved.")
    _say_each(workspace, ahead)


def plan_first_warnings(
    workspace: Workspace, policy: queries.Policy, *, now: dt.datetime
) -> None:
    """Plan the mails of a new workspace, for which none exist yet."""
    Notification.objects.bulk_create(
        (
            Notification(
                workspace=workspace,
                kind=Notification.Kind.LEASE_ENDS,
                due_at=moment.at,
                deadline_at=workspace.expires_at,
                seconds_before=moment.seconds_before,
            )
            for moment in _ahead(workspace, policy, now=now)
        ),
        ignore_conflicts=True,
    )


def _ahead(
    workspace: Workspace, policy: queries.Policy, *, now: dt.datetime
) -> tuple[queries.WarningMoment, ...]:
    return queries.warning_moments(
        workspace, policy, ends_at=workspace.expires_at, now=now
    )


def _say_each(workspace: Workspace, moments: tuple[queries.WarningMoment, ...]) -> None:
    for moment in moments:
        say(
            workspace,
            Notification.Kind.LEASE_ENDS,
            due_at=moment.at,
            deadline_at=workspace.expires_at,
            seconds_before=moment.seconds_before,
        )
