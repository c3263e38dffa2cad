"""Which limits would refuse a workspace, for many snapshots in few queries.

The limits are those of `check_admission`. Nothing is locked, so the answer may have
changed by the time somebody asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from django.db import connection

from provisioner.catalog.models import Snapshot, Template
from provisioner.copies.models import WorkspaceCopy
from provisioner.lib.limits import LimitReached, refusal_of
from provisioner.limits.admission import Counted, known_of, place_limits
from provisioner.mirrors.models import ENDED
from provisioner.sites.models import Site, SiteCapacity
from provisioner.workspaces.models import Workspace

AtSite = Counter[tuple[int, int]]
"""Numbers by site id and the id of a template or snapshot."""

# The ORM takes longer to put these together than they take to answer.
_COUNTED = """
    SELECT site_id, template_id, snapshot_id, count(*), count(*) - count(split_at)
    FROM workspaces_workspace
    WHERE site_id = ANY(%(sites)s) AND state <> %(retired)s
    GROUP BY site_id, template_id, snapshot_id
    UNION ALL
    SELECT site_id, NULL, NULL, count(*), 0
    FROM catalog_template
    WHERE site_id = ANY(%(sites)s) AND state <> ALL(%(without_volume)s)
    GROUP BY site_id
    UNION ALL
    SELECT site_id, NULL, NULL, count(*), 0
    FROM mirrors_mirror
    WHERE site_id = ANY(%(sites)s) AND state <> ALL(%(ended)s)
    GROUP BY site_id
    UNION ALL
    SELECT copy.site_id, template_id, snapshot_id, count(*), count(*)
    FROM copies_workspacecopy AS copy
    JOIN workspaces_workspace AS workspace ON workspace.id = copy.workspace_id
    WHERE copy.site_id = ANY(%(sites)s) AND copy.state <> %(copy_deleted)s
        AND (copy.volume_uuid <> '' OR copy.state = %(copying)s)
    GROUP BY copy.site_id, template_id, snapshot_id
"""


def refusals_of(
    snapshots: Collection[Snapshot],
    *,
    places: Mapping[int, Site],
    measured: Mapping[Site, SiteCapacity | None],
) -> dict[int, LimitReached]:
    """Return which limit refuses everybody a workspace, by snapshot id.

    Snapshots that can be cloned are left out. The snapshots have their templates
    loaded; `places` are the sites where they are cloned, by snapshot id, and `measured`
    their measurements. Four queries.
    """
    known = known_of(measured)
    by_site, by_template, by_snapshot = _counted(known)
    refusals = {}
    for snapshot in snapshots:
        template, site_id = snapshot.template, places[snapshot.pk].pk
        counted = Counted(
            by_template[site_id, template.pk],
            by_snapshot[site_id, snapshot.pk],
            by_site[site_id],
        )
        limits = place_limits(
            known[site_id], template, snapshot, counted=counted, is_for_builds=None
        )
        refusal = refusal_of(limits)
        if refusal is not None:
            refusals[snapshot.pk] = refusal
    return refusals


def _counted(
    sites: Collection[int],
) -> tuple[Counter[int], AtSite, AtSite]:
    """Return our volumes by site, and our clones there by template and by snapshot."""
    by_site, by_template, by_snapshot = Counter[int](), AtSite(), AtSite()
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNTED,
            {
                "sites": list(sites),
                "retired": Workspace.State.RETIRED,
                "without_volume": [Template.State.NEW, Template.State.DELETED],
                "ended": list(ENDED),
                "copy_deleted": WorkspaceCopy.State.DELETED,
                "copying": WorkspaceCopy.State.TRANSFERRING,
            },
        )
        for site_id, template_id, snapshot_id, volumes, clones in cursor.fetchall():
            by_site[site_id] += volumes
            by_template[site_id, template_id] += clones
            by_snapshot[site_id, snapshot_id] += clones
    return by_site, by_template, by_snapshot
