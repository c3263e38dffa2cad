"""Results on the pages of servers and sandboxes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from django.db.models import (
    Case,
    CharField,
    F,
    OuterRef,
    Subquery,
    Sum,
    Value,
    When,
    Window,
)
from django.db.models.functions import RowNumber

from provisioner.recipes.models import (
    Checkpoint,
    CheckpointPlan,
    Verification,
    VerifiedDepot,
)
from provisioner.recipes.queries import verification_of
from provisioner.sandboxes.models import Sandbox
from provisioner.sites.models import PerforceServer

SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class ServerResults:
    """What sandboxes of a server found last."""

    plan: CheckpointPlan | None
    checkpoints: list[Sandbox]
    verifications: list[Sandbox]
    upgrades: list[Sandbox]

    @property
    def has_any(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.plan or self.verifications or self.upgrades)


def results_of(server: PerforceServer) -> ServerResults:
    """Return the latest results of a server, for its page. Two queries."""
    rows = (
        Sandbox.with_retired.filter(perforce_server=server)
        .annotate(
            result=Case(
                When(checkpoint__removed_at__isnull=False, then=None),
                When(checkpoint__isnull=False, then=Value("checkpoint")),
                When(verification__isnull=False, then=Value("verification")),
                When(upgrade_seconds__isnull=False, then=Value("upgrade")),
                output_field=CharField(),
            ),
            bad=_sum_of_depots("bad"),
            missing=_sum_of_depots("missing"),
            place=Window(
                RowNumber(),
                partition_by="result",
                order_by=(F("created_at").desc(), F("pk").desc()),
            ),
        )
        .filter(result__isnull=False, place__lte=SHOWN)
        .select_related("checkpoint", "verification", "host")
        .order_by("place")
    )
    found: dict[str, list[Sandbox]] = defaultdict(list)
    for row in rows:
        found[row.result].append(row)
    plan = CheckpointPlan.objects.filter(server=server).first()
    return ServerResults(
        plan=plan,
        checkpoints=found["checkpoint"],
        verifications=found["verification"],
        upgrades=found["upgrade"],
    )


def _sum_of_depots(name: str) -> Subquery:
    """Return what was counted of revisions and of shelved files."""
    depots = VerifiedDepot.objects.filter(verification__sandbox=OuterRef("pk"))
    by_verification = depots.order_by().values("verification")
    return Subquery(
        by_verification.annotate(sum=Sum(F(name) + F(f"shelved_{name}"))).values("sum")
    )


def result_of(sandbox: Sandbox) -> dict[str, Checkpoint | Verification | None]:
    """Return what a sandbox was made for, for its page."""
    return {
        "checkpoint": Checkpoint.objects.filter(sandbox=sandbox).first(),
        "verification": verification_of(sandbox),
    }
