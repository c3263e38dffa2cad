"""Why something about mirrors is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class MirrorExists(ActionRefused):
    """The template “{template}” has a mirror at {site} already."""

    code = "mirror_exists"


class MirrorSiteUnfit(ActionRefused):
    """A template cannot be mirrored to a site like this."""

    code = "mirror_site_unfit"


class MirrorBusy(ActionRefused):
    """The mirror at {site} is at work. Wait for that to end."""

    code = "mirror_busy"


class CopyThere(ActionRefused):
    """The snapshot “{snapshot}” is at {site} already."""

    code = "copy_there"
