"""Checkpoints, plans and verifications, and who may see them."""

from __future__ import annotations

import datetime as dt
from functools import reduce
from operator import or_

from django.db.models import (
    BigIntegerField,
    Count,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
)
from django.db.models.functions import Coalesce, Greatest

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.lib.rows import with_words
from provisioner.recipes.models import (
    Checkpoint,
    CheckpointPlan,
    DamagedFile,
    Verification,
    VerificationPlan,
)
from provisioner.sandboxes.models import Sandbox, SandboxHost
from provisioner.sandboxes.queries import is_visible, plan_of
from provisioner.sites.models import PerforceServer

COUNTED = ("bad", "missing", "shelved_bad", "shelved_missing")
"""What is counted of each depot."""


def _any_of(prefix: str) -> Q:
    """Return the condition that something is lost or damaged."""
    return reduce(or_, (Q(**{f"{prefix}{name}__gt": 0}) for name in COUNTED))


def checkpoints(user: User) -> QuerySet[Checkpoint]:
    """Return all checkpoints, kept or removed. Raises: NotAllowed."""
    permissions.require(permissions.can_administer(user))
    return Checkpoint.objects.select_related(
        "sandbox__perforce_server", "sandbox__host"
    )


def checkpoints_matching(
    user: User, *, text: str = "", kept: str = "", server: str = ""
) -> QuerySet[Checkpoint]:
    """Return the checkpoints of a filter, kept or removed. Raises: NotAllowed."""
    rows = with_words(checkpoints(user), text, "sandbox__perforce_server__name", "path")
    if server:
        rows = rows.filter(sandbox__perforce_server__name=server)
    if kept:
        rows = rows.filter(removed_at__isnull=kept == "yes")
    return rows


def kept_at(server: PerforceServer, host: SandboxHost) -> QuerySet[Checkpoint]:
    """Return the checkpoints of a server that are kept on a host."""
    return Checkpoint.objects.filter(
        sandbox__perforce_server=server, sandbox__host=host, removed_at__isnull=True
    ).select_related("sandbox")


def checkpoint_plan_of(server: PerforceServer) -> CheckpointPlan:
    """Return the plan of a server, or the usual one, switched off and not saved."""
    return plan_of(CheckpointPlan, server)


def plans_in_trouble() -> QuerySet[CheckpointPlan]:
    """Return the plans whose last checkpoint failed, or is too old."""
    return CheckpointPlan.objects.filter(Q(has_failed=True) | Q(late_at__isnull=False))


def verifications_in_trouble() -> QuerySet[VerificationPlan]:
    """Return the plans whose last verification failed."""
    return VerificationPlan.objects.filter(has_failed=True)


def late_plans(*, now: dt.datetime) -> list[CheckpointPlan]:
    """Return the plans whose newest proven checkpoint is too old, if nobody was told.

    A plan that was just changed has as long for its first one.
    """
    proven = Checkpoint.objects.filter(
        sandbox__perforce_server=OuterRef("server"),
        is_proven=True,
        removed_at__isnull=True,
    ).order_by("-sandbox__taken_at")
    plans = CheckpointPlan.objects.filter(is_on=True, late_at__isnull=True).annotate(
        newest_at=Greatest(
            Subquery(proven.values("sandbox__taken_at")[:1]), "changed_at"
        )
    )
    return [
        plan
        for plan in plans.select_related("server")
        if plan.newest_at <= now - dt.timedelta(hours=plan.oldest_hours)
    ]


def verifications_visible_to(user: User) -> QuerySet[Verification]:
    """Return the verifications of sandboxes that a person may see, with their sums."""
    return with_sums(Verification.objects.filter(is_visible(user, by="sandbox__")))


def verification_of(sandbox: Sandbox) -> Verification | None:
    """Return the verification that a sandbox was made for, with its sums."""
    return with_sums(Verification.objects.filter(sandbox=sandbox)).first()


def with_sums(rows: QuerySet[Verification]) -> QuerySet[Verification]:
    """Add the sums of depots: what `COUNTED` says, `seconds`, and their `number`.

    `shelved` is of how many shelved files were read, `shelved_found` what was found.
    """
    sums = {
        name: Coalesce(Sum(f"depots__{name}"), Value(0), output_field=BigIntegerField())
        for name in COUNTED
    }
    return rows.select_related("sandbox__perforce_server", "sandbox__owner").annotate(
        **sums,
        shelved=Count("depots", Q(depots__shelved_seconds__isnull=False)),
        shelved_found=F("shelved_bad") + F("shelved_missing"),
        seconds=Sum("depots__seconds")
        + Coalesce(Sum("depots__shelved_seconds"), Value(0.0)),
        number=Count("depots", Q(depots__left_out="")),
    )


def verifications_matching(
    user: User, *, text: str = "", damage: str = ""
) -> QuerySet[Verification]:
    """Return the verifications of a filter: with damage ("yes"), or without ("no")."""
    rows = with_words(
        verifications_visible_to(user),
        text,
        "sandbox__perforce_server__name",
        "sandbox__name",
    )
    found = _any_of("")
    if damage:
        rows = rows.filter(found if damage == "yes" else ~found)
    return rows


def damaged_in(verification: Verification, user: User) -> QuerySet[DamagedFile]:
    """Return the damaged files that are listed of a verification."""
    visible = is_visible(user, by="depot__verification__sandbox__")
    rows = DamagedFile.objects.filter(visible, depot__verification=verification)
    return rows.select_related("depot")


def damaged_matching(
    verification: Verification,
    user: User,
    *,
    text: str = "",
    kind: str = "",
    status: str = "",
) -> QuerySet[DamagedFile]:
    """Return the damaged files of a filter: `kind` is "revisions" or "shelved"."""
    rows = with_words(damaged_in(verification, user), text, "path")
    if kind:
        rows = rows.filter(revision__isnull=kind == "shelved")
    return rows.filter(status=status) if status else rows


def servers_with_damage() -> int:
    """Return of how many servers the newest whole verification found damage."""
    newest = (
        Verification.objects.filter(ended_at__isnull=False)
        .order_by("sandbox__perforce_server", "-ended_at")
        .distinct("sandbox__perforce_server")
    )
    found = _any_of("depots__")
    rows = Verification.objects.filter(found, pk__in=newest.values("pk"))
    return rows.order_by().distinct().count()
