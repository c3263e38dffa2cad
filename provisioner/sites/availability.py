"""Whether a site can create anything now, as last seen. No remote call."""

from __future__ import annotations

from collections.abc import Collection

from django.utils import timezone

from provisioner.engine.queues import PERFORCE, STORAGE
from provisioner.engine.workers import AliveWorker, unserved
from provisioner.lib.times import largest_unit
from provisioner.sites.models import Site, SiteCapacity


def why_down(
    site: Site, capacity: SiteCapacity | None, *, workers: Collection[AliveWorker]
) -> str:
    """Return why no workspace can be created at a site now, "" if one can."""
    missing = unserved((STORAGE, PERFORCE, site.host_queue), workers)
    if missing:
        return f"No worker runs for the site {site}."
    return why_away(site, capacity)


def why_away(site: Site, capacity: SiteCapacity | None) -> str:
    """Return since when ONTAP of a site has not worked, and why; "" if it works."""
    if capacity is None or capacity.failing_since is None:
        return ""
    seconds = (timezone.now() - capacity.failing_since).total_seconds()
    return (
        f"ONTAP of the site {site} has not worked for {largest_unit(seconds)}: "
        f"{capacity.status_message}"
    )
