"""Syncs for administrators, and what the overview says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.directory.models import DirectoryChange, DirectorySync

SYNCS_SHOWN = 20
CHANGES_SHOWN = 500


@dataclass(frozen=True, kw_only=True)
class Syncs:
    """The newest syncs, and the changes of the newest of them."""

    rows: Sequence[DirectorySync]
    newest: DirectorySync | None
    changes: Sequence[DirectoryChange]


def newest_syncs(user: User) -> Syncs:
    """Return the newest syncs first, each with `changes_number` and `applied_number`.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    rows = list(_counted()[:SYNCS_SHOWN])
    newest = rows[0] if rows else None
    changes = newest.changes.select_related("account") if newest else ()
    return Syncs(rows=rows, newest=newest, changes=list(changes[:CHANGES_SHOWN]))


def sync_in_trouble() -> DirectorySync | None:
    """Return the newest sync that was no preview, if it failed or asks."""
    real = DirectorySync.objects.exclude(
        state__in=(DirectorySync.State.PREVIEWED, DirectorySync.State.RUNNING)
    )
    newest = real.first()
    trouble = (DirectorySync.State.FAILED, DirectorySync.State.ASKS)
    return newest if newest is not None and newest.state in trouble else None


def _counted() -> QuerySet[DirectorySync]:
    return DirectorySync.objects.annotate(
        changes_number=Count("changes"),
        applied_number=Count("changes", filter=Q(changes__is_applied=True)),
    ).order_by("-pk")  # a query with GROUP BY has no order of its own
