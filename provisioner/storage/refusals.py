"""Why something about splits is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class SplitNotAllowed(ActionRefused):
    """Owners may not split workspaces at {site}. Ask an administrator to split it, or
    to change the site's policy."""

    code = "split_not_allowed"


class PlanStale(ActionRefused):
    """What can be freed has changed since you saw the plan. Check the new one, then
    confirm it."""

    code = "plan_stale"


class AlreadyIndependent(ActionRefused):
    """The workspace “{name}” is independent of its snapshot already."""

    code = "already_independent"


class WorkspaceCopied(ActionRefused):
    """“{name}” is copied to {site} by SnapMirror, and ONTAP does not split such a
    volume. An administrator switches copies off on the mirror's page first."""

    code = "workspace_copied"


class NoRoomToSplit(ActionRefused):
    """The split of “{name}” would copy up to {copied}, but the aggregate at {site} has
    room for {room}. Free space there, or ask a storage administrator for more."""

    code = "no_room_to_split"


class NoSplitToStop(ActionRefused):
    """The workspace “{name}” is not being split."""

    code = "no_split_to_stop"


class BeingSplit(ActionRefused):
    """The workspace “{name}” is being made independent of its snapshot. Wait until that
    ends, or stop it."""

    code = "being_split"
