"""Heartbeats: a job that falls silent no longer needs its workspace."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.leases import queries
from provisioner.leases.refusals import NoHeartbeat
from provisioner.lib.clocks import database_now
from provisioner.lib.refusals import InvalidRequest
from provisioner.workspaces.models import LEASED, Workspace
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.refusals import WorkspaceNotReady, WorkspaceRetired

# Silence is looked for once a minute; shorter spans would promise too much.
SHORTEST_SECONDS = 30
LONGEST_SECONDS = queries.DAY


def check_heartbeat(seconds: int | None) -> None:
    """Refuse a heartbeat interval that would not work.

    Raises: InvalidRequest.
    """
    if seconds is not None and not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        raise InvalidRequest(
            f"heartbeat_seconds is from {SHORTEST_SECONDS} to {LONGEST_SECONDS}."
        )


def workspace_heartbeat(*, by: User, workspace: Workspace) -> Workspace:
    """Record a heartbeat of the job that uses a workspace.

    It is refused for a workspace that is being retired, or was, so that the job learns
    of it. Heartbeats do not enter the audit log: the workspace has the time of the last
    one.

    Raises: NotAllowed, NoHeartbeat, WorkspaceRetired, WorkspaceNotReady.
    """
    permissions.require(can_change_workspace(by, workspace))
    with transaction.atomic():
        workspace = Workspace.objects.select_for_update(of=("self",)).get(
            pk=workspace.pk
        )
        if workspace.is_put_away:
            raise WorkspaceRetired(name=workspace.name)
        if workspace.state not in LEASED:
            raise WorkspaceNotReady(
                name=workspace.name, state=workspace.get_state_display().lower()
            )
        if workspace.heartbeat_seconds is None:
            raise NoHeartbeat(name=workspace.name)
        workspace.heartbeat_at = database_now()
        workspace.save(update_fields=["heartbeat_at"])
    return workspace
