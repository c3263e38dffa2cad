"""Report obstacles and places of workspaces to the catalog."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.dispatch import receiver

from provisioner.accounts.models import User
from provisioner.catalog.events import asks_obstacles, asks_places
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.obstacles import Obstacle
from provisioner.limits.admission import quota_limits
from provisioner.sites.models import Site
from provisioner.sites.queries import home_sites_of
from provisioner.workspace_requests.obstacles import obstacles_to
from provisioner.workspace_requests.site_choice import arrivals_of, places_of


@receiver(asks_obstacles)
def what_stands_against(
    by: User,
    snapshots: Collection[Snapshot],
    sites: Mapping[int, Site] | None,
    **kwargs: Any,
) -> dict[int, Obstacle]:
    """Return the obstacles to a workspace of each snapshot, by snapshot id."""
    if sites is None:
        templates = [snapshot.template for snapshot in snapshots]
        places = places_of(home_sites_of(by), templates)
        sites = {snapshot.pk: site for site, snapshot in places.values()}
    return obstacles_to(by, snapshots, quotas=quota_limits(by), sites=sites)


@receiver(asks_places)
def where_they_are_cloned(
    by: User, templates: Collection[Template], **kwargs: Any
) -> tuple[dict[int, tuple[Site, Snapshot]], dict[int, str]]:
    """Return what a person gets at a home site, and what is on its way there."""
    homes = home_sites_of(by)
    return places_of(homes, templates), arrivals_of(homes, templates)
