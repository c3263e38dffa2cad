"""Why something about transfers of work is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class NothingNewer(ActionRefused):
    """There is no newer snapshot to transfer the work of “{name}” to."""

    code = "nothing_newer"


class NothingGoodNewer(ActionRefused):
    """No snapshot newer than that of “{name}” is one that new workspaces get. Choose
    one of those that there are, or wait for the next build."""

    code = "nothing_good_newer"


class NothingToAbort(ActionRefused):
    """No work is being brought into “{name}”, so there is nothing to abort."""

    code = "nothing_to_abort"
