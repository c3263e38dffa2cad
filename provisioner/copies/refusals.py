"""Why something about copies is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class CopyBusy(ActionRefused):
    """Something is under way on the copy of “{name}” at {site}. Wait until it ends."""

    code = "copy_busy"


class CopiesLeadThere(ActionRefused):
    """Workspaces are copied to {site}, or from there. Switch that off first, or have
    them copied to another site."""

    code = "copies_lead_there"


class CopyHindered(ActionRefused):
    """The workspace cannot be copied now."""

    code = "copy_hindered"
