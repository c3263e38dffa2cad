"""Which policy a workspace has, and which snapshots there are of it."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Exists, OuterRef, QuerySet

from provisioner.sites.models import Site
from provisioner.workspace_snapshots.models import SnapshotPolicy, WorkspaceSnapshot
from provisioner.workspaces.models import Workspace


def policy_of(
    workspace: Workspace, policies: Iterable[SnapshotPolicy]
) -> SnapshotPolicy | None:
    """Return the policy of the workspace's site that fits it best, or None."""
    fitting = [
        policy
        for policy in policies
        if policy.site_id == workspace.site_id
        and policy.template_id in (None, workspace.template_id)
        and policy.purpose in ("", workspace.purpose)
    ]
    return max(
        fitting,
        key=lambda policy: (policy.template_id is not None, bool(policy.purpose)),
        default=None,
    )


def sites_with_snapshots() -> QuerySet[Site]:
    """Return the sites that take snapshots of workspaces, or still have some."""
    policies = SnapshotPolicy.objects.filter(site=OuterRef("pk"))
    taken = WorkspaceSnapshot.objects.filter(workspace__site=OuterRef("pk"))
    return Site.objects.filter(Exists(policies) | Exists(taken)).order_by("pk")


def snapshots_of(workspace: Workspace) -> QuerySet[WorkspaceSnapshot]:
    """Return a workspace's snapshots, newest first."""
    return WorkspaceSnapshot.objects.filter(workspace=workspace)
