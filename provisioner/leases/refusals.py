"""Refusals about leases and abandoned workspaces."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused, NotAllowed


class NoHeartbeat(ActionRefused):
    """No heartbeat is expected from the workspace “{name}”: it was requested without
    heartbeat_seconds, or has been restored or extended since it missed one.
    """

    code = "no_heartbeat"


class LeaseTooLong(ActionRefused):
    """A lease until {asked} is too long: {latest} is the latest possible now. It can
    be extended again later."""

    code = "lease_too_long"


class LeaseNotLonger(ActionRefused):
    """That would not extend the lease of “{name}”."""

    code = "lease_not_longer"


class WorkspaceKept(ActionRefused):
    """The workspace “{name}” is kept without an end. Release it first."""

    code = "workspace_kept"


class WorkspaceNotKept(ActionRefused):
    """The workspace “{name}” is not kept, so there is nothing to release."""

    code = "workspace_not_kept"


class NotAllowedToKeep(NotAllowed):
    """Leases have a maximum here, so only an administrator can keep a workspace without
    an end. You can extend its lease."""

    code = "not_allowed_to_keep"


class NotAbandoned(ActionRefused):
    """The workspace “{name}” does not look abandoned any more. Nothing was done."""

    code = "not_abandoned"


class AskedAlready(ActionRefused):
    """{owner} was already asked about “{name}” today (UTC). No second mail is sent."""

    code = "asked_already"


class PreviewStale(ActionRefused):
    """The set of affected workspaces has changed since the preview: {count} now. Check
    it again, then decide."""

    code = "preview_stale"
