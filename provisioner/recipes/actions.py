"""Plan checkpoints and verifications, make one, and note what came of it."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import transaction
from django.urls import reverse

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.notify.actions.administrators import administrators_tell
from provisioner.recipes import refusals
from provisioner.recipes.models import CheckpointPlan, Verification, VerificationPlan
from provisioner.recipes.queries import COUNTED, checkpoint_plan_of, verification_of
from provisioner.sandboxes.actions.plans import plan_make, plan_note, plan_save
from provisioner.sandboxes.models import Sandbox
from provisioner.sandboxes.queries import plan_of
from provisioner.sites.models import PerforceServer


def checkpoint_plan_save(
    *, by: User, server: PerforceServer, **settings: Any
) -> CheckpointPlan:
    """Say where checkpoints of a server are kept, for how long, and when to make them.

    `settings` are the columns `host`, `version`, `directory`, `cron`, `keep_daily`,
    `keep_weekly`, `oldest_hours` and `is_on`; those left out stay.

    Raises: NotAllowed, InvalidRequest, PlanIncomplete.
    """
    with transaction.atomic():
        plan = plan_save(
            CheckpointPlan,
            by=by,
            server=server,
            kind="checkpoint_plan_changed",
            message="Plan of its checkpoints changed.",
            settings=settings,
        )
        CheckpointPlan.objects.filter(pk=plan.pk).update(late_at=None)
    plan.late_at = None
    return plan


def verification_plan_save(
    *, by: User, server: PerforceServer, **settings: Any
) -> VerificationPlan:
    """Say where and when the archives of a server are verified.

    `settings` are the columns `host`, `version`, `cron`, `has_shelved` and `is_on`;
    those left out stay.

    Raises: NotAllowed, InvalidRequest, PlanIncomplete.
    """
    return plan_save(
        VerificationPlan,
        by=by,
        server=server,
        kind="verification_plan_changed",
        message="Plan of its verifications changed.",
        settings=settings,
    )


def checkpoint_make(
    *, by: User, server: PerforceServer, at: dt.datetime | None = None, reason: str = ""
) -> Sandbox:
    """Request a checkpoint by the plan of a server, now or for when it was due.

    Raises: NotAllowed, PlanIncomplete, PlanRunning, and what refuses a sandbox.
    """
    return plan_make(checkpoint_plan_of(server), by=by, at=at, reason=reason)


def verification_make(
    *, by: User, server: PerforceServer, at: dt.datetime | None = None, reason: str = ""
) -> Sandbox:
    """Request a verification by the plan of a server, now or for when it was due.

    Raises: NotAllowed, PlanIncomplete, PlanRunning, and what refuses a sandbox.
    """
    plan = plan_of(VerificationPlan, server)
    return plan_make(plan, by=by, at=at, reason=reason)


def check_checkpoint(by: User, sandbox: Sandbox) -> None:
    """Refuse the request of a checkpoint that nobody may have, or that has no place.

    Raises: CheckpointsForAdministrators, NoCheckpointPlan.
    """
    if not permissions.can_administer(by):
        raise refusals.CheckpointsForAdministrators
    plan = checkpoint_plan_of(sandbox.perforce_server)
    if plan.pk is None or plan.host_id != sandbox.host_id:
        raise refusals.NoCheckpointPlan(
            server=sandbox.perforce_server.name, host=sandbox.host.name
        )


def note_checkpoint(server: PerforceServer, *, message: str) -> None:
    """Note that a checkpoint was made and proved."""
    with transaction.atomic():
        plan_note(
            CheckpointPlan,
            server,
            kind="checkpoint_made",
            message=message,
            has_failed=False,
        )
        CheckpointPlan.objects.filter(server=server).update(late_at=None)


@transaction.atomic
def note_checkpoint_failed(server: PerforceServer, *, message: str) -> None:
    """Note that a checkpoint failed, and tell administrators."""
    plan_note(
        CheckpointPlan,
        server,
        kind="checkpoint_failed",
        message=message,
        has_failed=True,
    )
    administrators_tell(
        server,
        title=f"The checkpoint of {server.name} failed",
        sentence=message,
        path=reverse("checkpoint-list"),
    )


@transaction.atomic
def note_checkpoint_late(plan: CheckpointPlan, *, now: dt.datetime) -> bool:
    """Tell administrators, once, that no checkpoint is as young as the plan says."""
    rows = CheckpointPlan.objects.filter(pk=plan.pk, late_at__isnull=True)
    if not rows.update(late_at=now):
        return False
    message = (
        f"No proven checkpoint is younger than {plan.oldest_hours} hours. Check why "
        f"the last ones failed, and whether a worker runs on the plan's host."
    )
    record_event(plan.server, kind="checkpoint_late", message=message)
    administrators_tell(
        plan.server,
        title=f"No recent checkpoint of {plan.server.name}",
        sentence=message,
        path=reverse("checkpoint-list"),
    )
    return True


@transaction.atomic
def note_verified(sandbox: Sandbox) -> None:
    """Note what a verification found, and tell administrators of damage."""
    verification = verification_of(sandbox)
    assert verification is not None  # the step before has written it
    message = verified_text(verification)
    server = sandbox.perforce_server
    plan_note(
        VerificationPlan,
        server,
        kind="archives_verified",
        message=message,
        has_failed=False,
    )
    if any(getattr(verification, name) for name in COUNTED):
        administrators_tell(
            server,
            title=f"Archives of {server.name} are damaged",
            sentence=message,
            path=reverse("verification-detail", args=[verification.pk]),
        )


def verified_text(verification: Verification) -> str:
    """Return what a verification, with its sums, found."""
    found = vars(verification)
    number = found["number"]
    depots = "1 depot" if number == 1 else f"{number} depots"
    said = (
        f"Verified {depots} of a copy: {found['bad']:,} damaged revisions, "
        f"{found['missing']:,} lost."
    )
    if found["shelved"]:
        said += (
            f" Of shelved files {found['shelved_bad']:,} are damaged, "
            f"{found['shelved_missing']:,} lost."
        )
    return said


@transaction.atomic
def note_verification_failed(server: PerforceServer, *, message: str) -> None:
    """Note that a verification failed, and tell administrators."""
    plan_note(
        VerificationPlan,
        server,
        kind="verification_failed",
        message=message,
        has_failed=True,
    )
    administrators_tell(
        server,
        title=f"The verification of {server.name} failed",
        sentence=message,
        path=reverse("verification-list"),
    )
