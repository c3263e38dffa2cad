"""Refusals about transfers of work."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class NothingNewer(ActionRefused):
    """There is no newer snapshot to transfer the work of “{name}” to."""

    code = "nothing_newer"


class NothingGoodNewer(ActionRefused):
    """New workspaces get no snapshot newer than that of “{name}”. Choose a snapshot, or
    wait for the next build."""

    code = "nothing_good_newer"


class NothingToTransfer(ActionRefused):
    """The workspace “{name}” is not for development, so it has no work to transfer."""

    code = "nothing_to_transfer"


class OwnerChanged(ActionRefused):
    """The account of {username} has another uid or gid than when {name} was created, so
    its files cannot be transferred. Shelve what is opened and unshelve it in a new
    workspace."""

    code = "owner_changed"


class NothingToAbort(ActionRefused):
    """No work is being transferred into “{name}”, so there is nothing to abort."""

    code = "nothing_to_abort"
