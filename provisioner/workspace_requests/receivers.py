"""Report obstacles to the catalog."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.dispatch import receiver

from provisioner.accounts.models import User
from provisioner.catalog.events import asks_obstacles
from provisioner.catalog.models import Snapshot
from provisioner.catalog.obstacles import Obstacle
from provisioner.limits.admission import quota_limits
from provisioner.workspace_requests.obstacles import obstacles_to


@receiver(asks_obstacles)
def what_stands_against(
    by: User, snapshots: Collection[Snapshot], **kwargs: Any
) -> dict[int, Obstacle]:
    """Return the obstacles to a workspace of each snapshot, by snapshot id."""
    return obstacles_to(by, snapshots, quotas=quota_limits(by))
