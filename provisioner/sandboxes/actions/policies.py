"""Who may have sandboxes."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import Team, User
from provisioner.audit_log.actions import record_event
from provisioner.sandboxes.actions.hosts import check_fields
from provisioner.sandboxes.models import SandboxPolicy


def sandbox_policy_save(
    *,
    by: User,
    team: Team,
    at_most: int,
    longest_hours: int,
    team_at_most: int | None = None,
) -> SandboxPolicy:
    """Set the sandbox policy of a team. Raises: NotAllowed, InvalidRequest."""
    permissions.require(permissions.can_administer(by))
    fields = {
        "at_most": at_most,
        "team_at_most": team_at_most,
        "longest_hours": longest_hours,
    }
    check_fields(SandboxPolicy(team=team, **fields))
    with transaction.atomic():
        policy, _ = SandboxPolicy.objects.update_or_create(team=team, defaults=fields)
        record_event(
            team,
            kind="sandbox_policy_saved",
            message=f"Each of its people may have {at_most} "
            f"{'sandbox' if at_most == 1 else 'sandboxes'} for {longest_hours} hours"
            + (f", and {team_at_most} together." if team_at_most else "."),
            actor=by,
        )
    return policy


def sandbox_policy_delete(*, by: User, policy: SandboxPolicy) -> None:
    """Delete the sandbox policy of a team. Raises: NotAllowed."""
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        deleted, _ = SandboxPolicy.objects.filter(pk=policy.pk).delete()
        if deleted:
            record_event(
                policy.team,
                kind="sandbox_policy_deleted",
                message="Its people may no longer have sandboxes.",
                actor=by,
            )
