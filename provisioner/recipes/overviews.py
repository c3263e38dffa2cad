"""Results on the pages of servers and sandboxes, and plans with their next time."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from provisioner.lib import schedules
from provisioner.recipes.models import Checkpoint, CheckpointPlan, Verification
from provisioner.recipes.queries import verification_of, with_sums
from provisioner.sandboxes.models import Sandbox
from provisioner.sites.models import PerforceServer

SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class PlanOverview:
    """A server that can have checkpoints, its plan, and when the next is due."""

    server: PerforceServer
    plan: CheckpointPlan | None
    next_at: dt.datetime | None


@dataclass(frozen=True, kw_only=True)
class ServerResults:
    """What sandboxes of a server found last."""

    plan: CheckpointPlan | None
    checkpoints: list[Checkpoint]
    verifications: list[Verification]
    upgrades: list[Sandbox]

    @property
    def has_any(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.plan or self.verifications or self.upgrades)


def plan_overviews(*, now: dt.datetime) -> list[PlanOverview]:
    """Return the servers whose volumes are described, with their plans. A query."""
    servers = PerforceServer.objects.filter(volumes__isnull=False).select_related(
        "checkpoint_plan__host", "checkpoint_plan__version"
    )
    found = []
    for server in servers.order_by("name"):
        plan = getattr(server, "checkpoint_plan", None)
        is_on = plan is not None and plan.is_on
        next_at = schedules.next_time(plan.cron, after=now) if plan and is_on else None
        found.append(PlanOverview(server=server, plan=plan, next_at=next_at))
    return found


def results_of(server: PerforceServer) -> ServerResults:
    """Return the latest results of a server, for its page. Four queries."""
    checkpoints = Checkpoint.objects.filter(
        sandbox__perforce_server=server, removed_at__isnull=True
    ).select_related("sandbox__host")
    verifications = with_sums(
        Verification.objects.filter(sandbox__perforce_server=server)
    )
    upgrades = Sandbox.with_retired.filter(
        perforce_server=server, upgrade_seconds__isnull=False
    )
    return ServerResults(
        plan=CheckpointPlan.objects.filter(server=server)
        .select_related("host")
        .first(),
        checkpoints=list(checkpoints[:SHOWN]),
        verifications=list(verifications[:SHOWN]),
        upgrades=list(upgrades[:SHOWN]),
    )


def result_of(sandbox: Sandbox) -> dict[str, Checkpoint | Verification | None]:
    """Return what a sandbox was made for, for its page."""
    return {
        "checkpoint": Checkpoint.objects.filter(sandbox=sandbox).first(),
        "verification": verification_of(sandbox),
    }
