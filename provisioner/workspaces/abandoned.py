"""What looks abandoned, for those who run the place; and how retiring it goes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.workspaces import leases, permissions
from provisioner.workspaces.abandonment import Abandonment, abandonment_of
from provisioner.workspaces.models import Notice, Operation, Snapshot, Workspace
from provisioner.workspaces.queries import with_words, workspaces_visible_to


@dataclass(frozen=True, kw_only=True)
class AbandonedWorkspace:
    """One workspace that looks abandoned, and what retiring it would give back.

    `frees_bytes` is None where nobody has measured it. `snapshot_clones` counts the
    clones that hold its snapshot, this one among them. `notified_at` is when its owner
    was last asked about it.
    """

    workspace: Workspace
    abandonment: Abandonment
    deadline: leases.Deadline
    snapshot_clones: int
    notified_at: dt.datetime | None

    @property
    def frees_bytes(self) -> int | None:
        return self.workspace.unique_bytes

    @property
    def is_last_clone(self) -> bool:
        """Whether nothing else holds its snapshot."""
        return self.snapshot_clones == 1


@dataclass(frozen=True, kw_only=True)
class AbandonedList:
    """All that look abandoned, the longest idle first. `unseen` were not looked at.

    `under_way` are those that were retired as abandoned, until each is really gone.
    """

    workspaces: tuple[AbandonedWorkspace, ...]
    after_days: int
    unseen: int
    progress: RetirementProgress

    @property
    def under_way(self) -> tuple[RetirementLine, ...]:
        return self.progress.lines

    @property
    def frees_bytes(self) -> int:
        return sum(found.frees_bytes or 0 for found in self.workspaces)

    @property
    def unmeasured(self) -> int:
        return sum(found.frees_bytes is None for found in self.workspaces)


def abandoned_workspaces(
    user: User, *, only: Sequence[int] | None = None, text: str = ""
) -> AbandonedList:
    """Return what looks abandoned now, for administrators; or of those named alone, or
    with all words of a text in their names, their owners' or their templates'.

    Raises: NotAllowed.
    """
    permissions.require(user.is_administrator)
    now = timezone.now()
    after_days = settings.ABANDONED_AFTER_DAYS
    policies = leases.saved_policies()
    ready = workspaces_visible_to(user).filter(state=Workspace.State.READY)
    if only is not None:
        ready = ready.filter(pk__in=only)
    named = with_words(ready, text, "name", "owner__username", "template__name")
    old = named.filter(ready_at__lte=now - dt.timedelta(days=after_days))
    found = []
    for workspace in old.annotate(
        snapshot_clones=Subquery(_clones_of_snapshot()),
        notified_at=Max(
            "notices__sent_at", filter=Q(notices__kind=Notice.Kind.ABANDONED)
        ),
    ):
        abandonment = abandonment_of(workspace, after_days=after_days, now=now)
        if not abandonment.is_abandoned:
            continue
        found.append(
            AbandonedWorkspace(
                workspace=workspace,
                abandonment=abandonment,
                deadline=leases.deadline_of(
                    workspace, policies.of_workspace(workspace), now
                ),
                snapshot_clones=workspace.snapshot_clones,
                notified_at=workspace.notified_at,
            )
        )
    found.sort(key=lambda one: (one.abandonment.idle_since, one.workspace.pk))
    return AbandonedList(
        workspaces=tuple(found),
        after_days=after_days,
        unseen=ready.filter(activity_seen_at__isnull=True).count(),
        progress=retirements_of_abandoned(user),
    )


def _clones_of_snapshot() -> QuerySet[Snapshot, dict[str, Any]]:
    """Return a query for how many clones hold a workspace's snapshot."""
    is_there = ~Q(workspaces__state=Workspace.State.RETIRED)
    return (
        Snapshot.objects.filter(pk=OuterRef("snapshot_id"))
        .annotate(clones=Count("workspaces", filter=is_there))
        .order_by()
        .values("clones")
    )


@dataclass(frozen=True, kw_only=True)
class RetirementLine:
    """How far a workspace is on its way into the trash, or out of the world."""

    workspace: Workspace
    operation: Operation | None

    @property
    def is_moving(self) -> bool:
        return self.workspace.is_moving

    @property
    def is_put_away(self) -> bool:
        return self.workspace.state in (
            Workspace.State.TRASHED,
            Workspace.State.RETIRED,
        )

    @property
    def is_gone(self) -> bool:
        return self.workspace.state == Workspace.State.RETIRED

    @property
    def sentence(self) -> str:
        """Say where it is, and what stopped it."""
        if self.is_moving or self.is_put_away:
            return f"{self.workspace.get_state_display()}."
        reason = self.operation.status_message if self.operation else ""
        return reason or "It was not retired."


@dataclass(frozen=True, kw_only=True)
class RetirementProgress:
    lines: tuple[RetirementLine, ...]

    @property
    def is_moving(self) -> bool:
        return any(line.is_moving for line in self.lines)

    @property
    def put_away(self) -> int:
        return sum(line.is_put_away for line in self.lines)

    @property
    def gone(self) -> int:
        return sum(line.is_gone for line in self.lines)

    @property
    def announcement(self) -> str:
        said = f"{self.put_away} of {len(self.lines)} are in the trash or gone"
        return f"{said}, {self.gone} for good."


def retirements_of_abandoned(user: User) -> RetirementProgress:
    """Return how far those are that were retired as abandoned and are still there.

    Each stays until it is really gone: its clone destroyed, or its owner has it back.

    Raises: NotAllowed.
    """
    permissions.require(user.is_administrator)
    later = Operation.objects.filter(
        kind=Operation.Kind.RETIRE,
        workspace=OuterRef("workspace"),
        pk__gt=OuterRef("pk"),
    )
    retirements = Operation.objects.filter(
        ~Exists(later), kind=Operation.Kind.RETIRE, parameters__as_abandoned=True
    ).exclude(workspace__state__in=(Workspace.State.READY, Workspace.State.RETIRED))
    return retirement_progress(
        user, pks=list(retirements.values_list("workspace", flat=True))
    )


def retirement_progress(user: User, *, pks: Sequence[int]) -> RetirementProgress:
    """Return how far these workspaces are, for administrators.

    Raises: NotAllowed.
    """
    permissions.require(user.is_administrator)
    workspaces = list(
        workspaces_visible_to(user).filter(pk__in=pks).order_by("name", "pk")
    )
    newest = {
        operation.workspace_id: operation
        for operation in Operation.objects.filter(workspace__in=workspaces)
        .order_by("workspace_id", "-created_at", "-id")
        .distinct("workspace_id")
    }
    return RetirementProgress(
        lines=tuple(
            RetirementLine(workspace=workspace, operation=newest.get(workspace.pk))
            for workspace in workspaces
        )
    )
