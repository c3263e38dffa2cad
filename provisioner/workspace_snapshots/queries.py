"""Which policy a workspace has, and which snapshots there are of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db.models import Exists, F, OuterRef, QuerySet

from provisioner.lib.fullness import WARNING_PERCENT
from provisioner.lib.sizes import size_text
from provisioner.sites.models import Site
from provisioner.workspace_snapshots.models import SnapshotPolicy, WorkspaceSnapshot
from provisioner.workspaces.models import LEASED, Workspace


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


@dataclass(frozen=True, kw_only=True)
class HeldSpace:
    """What the snapshots of a workspace hold, and what they may; None: no bound."""

    used_bytes: int
    allowed_bytes: int | None

    @property
    def percent(self) -> int:
        """The share of what they may hold, 0 without a bound."""
        return 100 * self.used_bytes // self.allowed_bytes if self.allowed_bytes else 0

    @property
    def is_near(self) -> bool:
        return self.percent >= WARNING_PERCENT

    @property
    def is_exceeded(self) -> bool:
        return self.percent > 100

    @property
    def sentence(self) -> str:
        used = size_text(self.used_bytes)
        if self.allowed_bytes is None:
            return f"They hold {used}."
        return (
            f"They hold {used} of the {size_text(self.allowed_bytes)} that their "
            "policy allows."
        )


def held_by_snapshots(
    workspace: Workspace, policies: Iterable[SnapshotPolicy]
) -> HeldSpace | None:
    """Return what a workspace's snapshots hold as last measured, None before that."""
    if workspace.snapshot_bytes is None or not workspace.actual_size_bytes:
        return None
    policy = policy_of(workspace, policies)
    percent = policy.max_percent if policy is not None else 0
    return HeldSpace(
        used_bytes=workspace.snapshot_bytes,
        allowed_bytes=workspace.actual_size_bytes * percent // 100 or None,
    )


def near_their_bound(site: Site | None) -> Iterator[tuple[Workspace, HeldSpace]]:
    """Yield workspaces of a site, None: of all, whose snapshots hold nearly what they
    may.

    Two queries; only the first one where no policy has a bound.
    """
    policies = list(SnapshotPolicy.objects.filter(**({"site": site} if site else {})))
    bounds = [policy.max_percent for policy in policies if policy.max_percent]
    if not bounds:
        return
    least = min(bounds) * WARNING_PERCENT / 10_000
    rows = Workspace.objects.filter(
        site__in={policy.site_id for policy in policies},
        state__in=LEASED,
        snapshot_bytes__gte=F("actual_size_bytes") * least,
    )
    for workspace in rows.order_by("pk"):
        held = held_by_snapshots(workspace, policies)
        if held is not None and held.is_near:
            yield workspace, held


def sites_with_snapshots() -> QuerySet[Site]:
    """Return the sites that take snapshots of workspaces, or still have some."""
    policies = SnapshotPolicy.objects.filter(site=OuterRef("pk"))
    taken = WorkspaceSnapshot.objects.filter(workspace__site=OuterRef("pk"))
    return Site.objects.filter(Exists(policies) | Exists(taken)).order_by("pk")


def snapshots_of(workspace: Workspace) -> QuerySet[WorkspaceSnapshot]:
    """Return a workspace's snapshots, newest first."""
    return WorkspaceSnapshot.objects.filter(workspace=workspace)
