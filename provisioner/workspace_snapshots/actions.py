"""Change the policies of snapshots of workspaces."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.catalog.models import Template
from provisioner.lib.refusals import InvalidRequest
from provisioner.sites.models import Site
from provisioner.workspace_snapshots.models import (
    MOST_DAILY,
    MOST_HOURLY,
    SnapshotPolicy,
)


def snapshot_policy_save(
    *,
    by: User,
    site: Site,
    template: Template | None = None,
    purpose: str = "",
    hourly: int,
    daily: int,
) -> SnapshotPolicy:
    """Set how many snapshots are kept of a site's workspaces, or of some of them.

    A sweep applies it within minutes. Snapshots that were taken before go with the
    clone, or as the new policy says.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_administer(by))
    for field, count, most in (
        ("hourly", hourly, MOST_HOURLY),
        ("daily", daily, MOST_DAILY),
    ):
        if not 0 <= count <= most:
            raise InvalidRequest.at(field, f"Keep 0 to {most}.")
    key: dict[str, Any] = {"site": site, "template": template, "purpose": purpose}
    settings = {"hourly": hourly, "daily": daily}
    with transaction.atomic():
        before = SnapshotPolicy.objects.filter(**key).values(*settings).first()
        policy, _ = SnapshotPolicy.objects.update_or_create(**key, defaults=settings)
        changes = changes_between(before or dict.fromkeys(settings), settings)
        if changes:
            record_event(
                site,
                kind="snapshot_policy_changed",
                message=f"{policy}: {hourly} hourly and {daily} daily ones are kept.",
                actor=by,
                data=changes,
            )
    return policy


def snapshot_policy_delete(*, by: User, policy: SnapshotPolicy) -> None:
    """Delete a policy; a more general one counts then, or none. Safe to repeat.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        deleted, _ = SnapshotPolicy.objects.filter(pk=policy.pk).delete()
        if deleted:
            record_event(
                policy.site,
                kind="snapshot_policy_deleted",
                message=f"{policy}: the policy was deleted.",
                actor=by,
            )
