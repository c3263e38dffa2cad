"""What can be restored from copies, and what was."""

from __future__ import annotations

from provisioner.recovery.models import Recovery
from provisioner.sites.models import Site, SiteCapacity
from provisioner.workspaces.models import PUT_AWAY, Workspace


def answers(site: Site) -> bool:
    """Return whether ONTAP of a site answered when it was measured last.

    No remote call: the sweep of capacities asks every few minutes.
    """
    failing = SiteCapacity.objects.filter(site=site, failing_since__isnull=False)
    return not failing.exists()


def recovered_before(source: Workspace, *, snapshot_name: str) -> Workspace | None:
    """Return the workspace that was restored from this snapshot, if it is in use."""
    recovery = (
        Recovery.objects.filter(source=source, snapshot_name=snapshot_name)
        .exclude(workspace__state__in=PUT_AWAY)
        .select_related("workspace")
        .first()
    )
    return recovery.workspace if recovery else None
