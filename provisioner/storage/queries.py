"""What is known of splits: the last one of a workspace, and how fast they are."""

from __future__ import annotations

from django.db.models import Sum

from provisioner.sites.models import Site
from provisioner.storage.models import Split
from provisioner.workspaces.models import Workspace


def last_split(workspace: Workspace) -> Split | None:
    """Return the split that was requested last."""
    splits = workspace.splits.select_related("operation__requested_by")
    return splits.order_by("-pk").first()


def measured_rate(site: Site) -> float | None:
    """Return how many bytes a second the splits at a site copied, or None before one.

    Those that copied nothing are left out.
    """
    ended = Split.objects.filter(
        workspace__site=site, seconds__gt=0, estimate_bytes__gt=0
    )
    sums = ended.aggregate(bytes=Sum("estimate_bytes"), seconds=Sum("seconds"))
    return sums["bytes"] / sums["seconds"] if sums["seconds"] else None
