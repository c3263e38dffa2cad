"""Why something about copies is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class CopyBusy(ActionRefused):
    """Something is under way on the copy of “{name}” at {site}. Wait until it ends."""

    code = "copy_busy"


class CopyHindered(ActionRefused):
    """The workspace cannot be copied now."""

    code = "copy_hindered"
