"""Abandoned workspaces for administrators, and the progress of retiring them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count, Max, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.engine.models import Operation
from provisioner.leases import queries
from provisioner.leases.abandonment import (
    Abandonment,
    abandonment_of,
    looks_abandoned,
)
from provisioner.lib.rows import with_words
from provisioner.notify.models import Notification
from provisioner.web.templatetags.cloneyard import exact, size
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import workspaces_visible_to


@dataclass(frozen=True, kw_only=True)
class AbandonedWorkspace:
    """One abandoned workspace, and the space that retiring it would free.

    `frees_bytes` is None until measured. `snapshot_clones` counts the clones of its
    snapshot, this one included. `notified_at` is when its owner was last asked about
    it.
    """

    workspace: Workspace
    abandonment: Abandonment
    deadline: queries.Deadline
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
class Reclaimable:
    """Totals of the abandoned workspaces. `unseen` counts those not yet checked."""

    number: int
    frees_bytes: int
    unmeasured: int
    unseen: int
    after_days: int

    @property
    def which(self) -> str:
        return "it" if self.number == 1 else f"all {self.number:,}"


@dataclass(frozen=True, kw_only=True)
class AbandonedList(Reclaimable):
    """All workspaces that look abandoned, longest idle first.

    `progress` shows those retired as abandoned, until each is purged.
    """

    workspaces: tuple[AbandonedWorkspace, ...]
    progress: RetirementProgress

    @property
    def under_way(self) -> tuple[RetirementLine, ...]:
        return self.progress.lines


def abandoned_workspaces(user: User) -> AbandonedList:
    """Return what looks abandoned now, for administrators.

    Raises: NotAllowed.
    """
    found = list(abandoned_matching(user).order_by("idle_since", "pk"))
    return AbandonedList(
        workspaces=tuple(shown_abandoned(found)),
        progress=retirements_of_abandoned(user),
        **vars(reclaimable(user)),
    )


def abandoned_matching(user: User, *, text: str = "") -> QuerySet[Workspace]:
    """Return what looks abandoned now and matches all words of a text.

    Raises: NotAllowed.
    """
    permissions.require(user.is_administrator)
    named = with_words(
        _ready(user), text, *("name", "owner__username", "template__name")
    )
    return named.filter(looks_abandoned(now=timezone.now()))


def reclaimable(user: User) -> Reclaimable:
    """Return the space that retiring all abandoned workspaces would free.

    Raises: NotAllowed.
    """
    permissions.require(user.is_administrator)
    ready = _ready(user).order_by()
    sums = ready.filter(looks_abandoned(now=timezone.now())).aggregate(
        number=Count("pk"),
        frees_bytes=Coalesce(Sum("unique_bytes"), 0),
        unmeasured=Count("pk", filter=Q(unique_bytes__isnull=True)),
    )
    return Reclaimable(
        unseen=ready.filter(activity_seen_at__isnull=True).count(),
        after_days=settings.ABANDONED_AFTER_DAYS,
        **sums,
    )


def _ready(user: User) -> QuerySet[Workspace]:
    return workspaces_visible_to(user).filter(state=Workspace.State.READY)


def shown_abandoned(workspaces: Sequence[Workspace]) -> list[AbandonedWorkspace]:
    """Return workspaces with their signs of life, and what holds their space."""
    now, policies = timezone.now(), queries.policies_of(workspaces)
    clones, notified_at = _clones_of_snapshots(workspaces), _notified_at(workspaces)
    return [
        AbandonedWorkspace(
            workspace=workspace,
            abandonment=abandonment_of(workspace, now=now),
            deadline=queries.deadline_of(
                workspace, policies.of_workspace(workspace), now
            ),
            snapshot_clones=clones[workspace.snapshot_id],
            notified_at=notified_at.get(workspace.pk),
        )
        for workspace in workspaces
    ]


def _clones_of_snapshots(workspaces: Sequence[Workspace]) -> dict[int, int]:
    """Return the number of clones of each snapshot."""
    snapshots = {workspace.snapshot_id for workspace in workspaces}
    holding = Workspace.objects.filter(snapshot__in=snapshots).order_by()
    there = holding.there()
    return dict(there.values_list("snapshot").annotate(Count("pk")))


def _notified_at(workspaces: Sequence[Workspace]) -> dict[int, dt.datetime]:
    """Return when owners were last asked, for those that were."""
    asked = Notification.objects.filter(
        kind=Notification.Kind.ABANDONED,
        workspace__in=workspaces,
        sent_at__isnull=False,
    )
    return dict(asked.order_by().values_list("workspace").annotate(Max("sent_at")))


@dataclass(frozen=True, kw_only=True)
class RetirementLine:
    """The progress of a workspace's retirement or purge."""

    workspace: Workspace
    operation: Operation | None

    @property
    def is_moving(self) -> bool:
        return self.workspace.is_moving

    @property
    def is_purged(self) -> bool:
        return self.workspace.state == Workspace.State.RETIRED

    @property
    def sentence(self) -> str:
        """Its progress as a sentence, and what stopped it."""
        if self.is_moving or self.workspace.is_put_away:
            return f"{self.workspace.get_state_display()}."
        reason = self.operation.status_message if self.operation else ""
        return reason or "It was not retired."

    @property
    def purge(self) -> SafeString:
        """When the trash lets go of it, and what that frees; "" if it is not there."""
        workspace = self.workspace
        if not workspace.is_trashed:
            return SafeString()
        frees = ""
        if workspace.unique_bytes is not None:
            frees = format_html(" and frees {}", size(workspace.unique_bytes))
        return format_html("It is purged on {}{}.", exact(workspace.purge_at), frees)


@dataclass(frozen=True, kw_only=True)
class RetirementProgress:
    lines: tuple[RetirementLine, ...]

    @property
    def is_moving(self) -> bool:
        return any(line.is_moving for line in self.lines)

    @property
    def put_away(self) -> int:
        return sum(line.workspace.is_put_away for line in self.lines)

    @property
    def purged(self) -> int:
        return sum(line.is_purged for line in self.lines)

    @property
    def announcement(self) -> str:
        said = f"{self.put_away} of {len(self.lines)} are in the trash or purged"
        return f"{said}, {self.purged} of them purged."


def retirements_of_abandoned(user: User) -> RetirementProgress:
    """Return the progress of the workspaces retired as abandoned.

    Each is listed until it is purged or restored.

    Raises: NotAllowed.
    """
    permissions.require(user.is_administrator)
    return _progress_of(workspaces_visible_to(user).filter(retired_as_abandoned=True))


def retirement_progress(user: User, *, pks: Sequence[int]) -> RetirementProgress:
    """Return the progress of these workspaces, for administrators.

    Raises: NotAllowed.
    """
    permissions.require(user.is_administrator)
    return _progress_of(workspaces_visible_to(user).filter(pk__in=pks))


def _progress_of(retired: QuerySet[Workspace]) -> RetirementProgress:
    workspaces = list(retired.order_by("name", "pk"))
    newest = {
        operation.subject_id: operation
        for operation in Operation.objects.filter(subject__workspace__in=workspaces)
        .order_by("subject_id", "-id")
        .distinct("subject_id")
    }
    return RetirementProgress(
        lines=tuple(
            RetirementLine(
                workspace=workspace, operation=newest.get(workspace.subject_id)
            )
            for workspace in workspaces
        )
    )
