"""Why something about mirrors is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class MirrorExists(ActionRefused):
    """The template “{template}” already has a mirror at {site}."""

    code = "mirror_exists"


class MirrorSiteUnfit(ActionRefused):
    """The template cannot be mirrored to this site."""

    code = "mirror_site_unfit"


class MirrorBusy(ActionRefused):
    """Something is under way on the mirror at {site}. Wait until it ends."""

    code = "mirror_busy"


class MirrorInUse(ActionRefused):
    """Workspaces at {site}, or copies of others, are clones of this mirror. Delete warm
    pools there, retire and purge the workspaces, and switch copies off, first."""

    code = "mirror_in_use"


class SnapshotNotAtSite(ActionRefused):
    """The snapshot “{snapshot}” is not at {site}. Choose another snapshot or site, or
    wait until it is transferred."""

    code = "snapshot_not_at_site"


class NothingAtSite(ActionRefused):
    """The template “{template}” has no snapshot at {site} that fits. Choose another
    site, or wait until one is transferred."""

    code = "nothing_at_site"


class SnapshotMirrored(ActionRefused):
    """The snapshot “{snapshot}” is already at {site}."""

    code = "snapshot_mirrored"


class MirrorNotPromotable(ActionRefused):
    """The mirror cannot become the home of its template."""

    code = "mirror_not_promotable"


class NotAFormerHome(ActionRefused):
    """{site} is not a former home of this template that can be re-established or given
    up."""

    code = "not_a_former_home"


class FormerHomeInUse(ActionRefused):
    """Workspaces at {site} are clones of {snapshots}, which would be discarded. Retire
    and purge them first, or give the former home up."""

    code = "former_home_in_use"


class HomeMoves(ActionRefused):
    """The home of “{template}” is moving to {site}. Build it when that is done."""

    code = "home_moves"
