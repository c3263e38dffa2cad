"""Queries of workspaces, by who may see them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db.models import (
    Count,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    prefetch_related_objects,
)

from provisioner.accounts.models import User
from provisioner.accounts.permissions import (
    Verb,
    can_read_mounts,
    may,
    own_or_of_team,
    team_members,
)
from provisioner.catalog.models import Snapshot, SnapshotQuerySet, Template
from provisioner.engine.models import Operation, Step
from provisioner.engine.workflow import WORKFLOWS
from provisioner.mirrors.queries import default_at, parent_volume, snapshots_at
from provisioner.workspaces.events import asks_deadline, asks_trash_seconds
from provisioner.workspaces.models import (
    Rescue,
    Share,
    Workspace,
    WorkspaceClient,
    WorkspaceOperation,
    WorkspaceQuerySet,
)

READS = (
    *("name", "remote_name", "client_suffix", "tag", "purpose"),
    *("state", "status_message"),
    *("created_at", "expires_at", "keep_reason", "unique_bytes"),
    *("trashed_at", "purge_at", "retired_at"),
    *("owner__username", "template__name", "snapshot__change"),
    *("site__name", "site__title", "site__mount_root", "site__perforce_server__name"),
)
"""The columns that lists of workspaces read."""
_RESTORABLE = (
    Workspace.State.TRASHED,
    Workspace.State.RETIRING,
    Workspace.State.FAILED,
)


def workspaces_visible_to(user: User) -> WorkspaceQuerySet:
    """Return the workspaces a person may see, by the table of permissions.

    Pool members are left out: they are shown with their pool.
    """
    return Workspace.objects.filter(_visible_to(user), is_pooled=False).select_related(
        "owner", "template", "snapshot", "site__perforce_server"
    )


def _visible_to(user: User) -> Q:
    """Return the condition for own, team mates' and shared workspaces."""
    if may(user, Verb.SEE_WORKSPACE):
        return Q()
    shared = Share.objects.reaching(user).order_by().values("workspace")
    return own_or_of_team(user) | Q(pk__in=shared)


def mounts_visible_to(user: User) -> WorkspaceQuerySet:
    """Return the workspaces whose mounts a person, or a host with its token, may read.

    Those in the trash are left out: nobody mounts them.
    """
    if can_read_mounts(user):
        return Workspace.objects.select_related("site").not_put_away()
    return workspaces_visible_to(user).not_put_away()


def workspaces_of_team(user: User) -> QuerySet[Workspace]:
    """Return the workspaces of team mates, except the trash, newest first."""
    if user.team_id is None:
        return Workspace.objects.none()
    return (
        workspaces_visible_to(user)
        .filter(owner__team=user.team_id)
        .exclude(owner=user)
        .not_put_away()
    )


def workspaces_shared_with(user: User) -> QuerySet[Workspace]:
    """Return the workspaces shared with a person, except the trash, latest first."""
    mine = Share.objects.reaching(user).filter(workspace=OuterRef("pk")).order_by()
    return (
        workspaces_visible_to(user)
        .filter(pk__in=Share.objects.reaching(user).order_by().values("workspace"))
        .exclude(owner=user)
        .not_put_away()
        .annotate(
            shared_at=Subquery(mine.order_by("-created_at").values("created_at")[:1])
        )
        .order_by("-shared_at", "-pk")
    )


def parent_of(workspace: Workspace) -> str:
    """Return the name of the volume that a workspace's volume is a clone of."""
    return workspace.cloned_from or parent_volume(workspace.snapshot, workspace.site)


def siblings_of(workspace: Workspace) -> WorkspaceQuerySet:
    """Return the other workspaces of a workspace's snapshot."""
    return (
        Workspace.objects.filter(snapshot=workspace.snapshot_id, is_pooled=False)
        .exclude(pk=workspace.pk)
        .not_put_away()
    )


def siblings_visible_to(user: User, workspace: Workspace) -> QuerySet[Workspace]:
    """Return the siblings that a person may see, with names, states and owners."""
    siblings = siblings_of(workspace)
    visible = siblings.filter(_visible_to(user))
    return visible.select_related("owner").only("name", "state", "owner__username")


def workspaces_of(user: User) -> QuerySet[Workspace]:
    """Return a person's own workspaces that are not in the trash, newest first."""
    return workspaces_visible_to(user).filter(owner=user).not_put_away()


def retired_workspaces_of(user: User) -> QuerySet[Workspace]:
    """Return a person's own retired workspaces: those that were purged."""
    return workspaces_visible_to(user).filter(owner=user, state=Workspace.State.RETIRED)


def trashed_workspaces_of(user: User) -> QuerySet[Workspace]:
    """Return a person's workspaces in the trash, next to be purged first."""
    return (
        workspaces_visible_to(user)
        .filter(
            owner=user, state__in=(Workspace.State.TRASHED, Workspace.State.PURGING)
        )
        .order_by("purge_at", "pk")
    )


class Uses(NamedTuple):
    """How many recent workspaces of a template there are, by their owners."""

    own: int = 0
    of_team: int = 0
    all: int = 0


def uses_of_templates(user: User, *, since: dt.datetime) -> dict[int, Uses]:
    """Return how much each template was used since a time, by its id. One query."""
    of_team = Q(owner__in=team_members(user)) if user.team_id else Q(pk__in=[])
    rows = (
        Workspace.objects.filter(is_pooled=False, created_at__gte=since)
        .order_by()
        .values_list("template")
        .annotate(
            own=Count("template", filter=Q(owner=user)),
            of_team=Count("template", filter=of_team),
            all=Count("template"),
        )
    )
    return {template_id: Uses(*numbers) for template_id, *numbers in rows}


def subjects_of_workspaces_visible_to(user: User) -> QuerySet[Any, Any]:
    """Return the ids of the subjects of the workspaces that a person may see.

    Each part uses its own index; combined, they would read all rows.
    """
    theirs = Workspace.objects.filter(own_or_of_team(user), is_pooled=False).order_by()
    shared = Share.objects.reaching(user).filter(workspace__is_pooled=False).order_by()
    return theirs.values("subject").union(shared.values("workspace__subject"))


def with_newest_operation(workspaces: QuerySet[Workspace]) -> QuerySet[Workspace]:
    """Give each subject `newest_operations`: a list of one, or none; two queries."""
    return workspaces.select_related("subject").prefetch_related(_newest_operations())


def read_newest_operation(workspace: Workspace) -> None:
    """Load `newest_operations` of a workspace's subject.

    Of steps that nobody waits for, only the state is read.
    """
    steps = Step.objects.order_by("position")
    if not workspace.is_moving:
        steps = steps.only("operation", "name", "state")
    prefetch_related_objects([workspace], _newest_operations(steps))


def _newest_operations(
    steps: QuerySet[Step] | None = None,
) -> Prefetch[str, QuerySet[Operation], str]:
    in_order = Step.objects.order_by("position") if steps is None else steps
    newest = (
        Operation.objects.order_by("subject_id", "-id")
        .distinct("subject_id")
        .only("subject", "kind", "state", "created_at")
        .prefetch_related(Prefetch("steps", queryset=in_order))
    )
    return Prefetch("subject__operations", queryset=newest, to_attr="newest_operations")


def last_operation(workspace: Workspace) -> Operation | None:
    """Return the operation requested last, by number rather than by clock."""
    return workspace.operations.order_by("-pk").first()


def latest_operation(subject: Workspace | Template) -> Operation | None:
    """Return the newest operation about a workspace or a template, with its steps."""
    return (
        subject.operations.select_related("requested_by")
        .prefetch_related(Prefetch("steps", queryset=Step.objects.order_by("position")))
        .order_by("-pk")
        .first()
    )


def operations_since_whole(workspace: Workspace) -> QuerySet[Operation]:
    """Return the operations since the client was whole; they build on each other.

    The first is the retirement that found it whole, or the last restore.
    """
    operations = workspace.operations.order_by("pk")
    client = WorkspaceClient.objects.filter(workspace=workspace).first()
    if client is None or client.since_id is None:
        return operations
    return operations.filter(pk__gte=client.since_id)


def last_rescue(workspace: Workspace) -> Rescue | None:
    """Return the last rescue since the client was whole, or None."""
    since_whole = operations_since_whole(workspace)
    return Rescue.objects.filter(operation__in=since_whole, is_complete=True).first()


def snapshots_to_move_to(workspace: Workspace) -> SnapshotQuerySet:
    """Return the snapshots newer than a workspace's at its site, newest first."""
    there = snapshots_at(workspace.template, workspace.site)
    return there.filter(created_at__gt=workspace.snapshot.created_at)


def default_to_move_to(workspace: Workspace) -> Snapshot | None:
    """Return its site's default snapshot if it is newer than its own, else None."""
    default = default_at(workspace.template, workspace.site)
    is_newer = default and default.created_at > workspace.snapshot.created_at
    return default if is_newer else None


def can_be_restored(workspace: Workspace) -> bool:
    """Return whether the workspace can be restored, as far as its rows tell."""
    return workspace.pk in restorable([workspace])


def restorable(workspaces: Iterable[Workspace]) -> set[int]:
    """Return the keys of the workspaces that can be restored, in one query at most."""
    candidates = {
        workspace.pk
        for workspace in workspaces
        if workspace.ready_at is not None and workspace.state in _RESTORABLE
    }
    return candidates - _purged(candidates) if candidates else candidates


def was_purged(workspace: Workspace) -> bool:
    """Return whether a purge has started a step that cannot be undone."""
    return bool(_purged({workspace.pk}))


def _purged(keys: set[int]) -> set[int]:
    begun = Step.objects.committed().filter(
        operation__subject__workspace__in=keys,
        operation__kind=WorkspaceOperation.PURGE,
    )
    return set(begun.values_list("operation__subject__workspace", flat=True))


def seconds_it_took(workspace: Workspace) -> float:
    """Return how long provisioning took, without waits in queues.

    Independent steps run at the same time, so it is the longest path through them.
    """
    made = (
        workspace.operations.filter(
            kind=WorkspaceOperation.PROVISION, state=Operation.State.SUCCEEDED
        )
        .prefetch_related("steps")
        .first()
    )
    took = {step.name: step.seconds or 0.0 for step in made.steps.all()} if made else {}
    ended: dict[str, float] = {}
    for spec in WORKFLOWS[
        WorkspaceOperation.PROVISION
    ].steps:  # each comes after those that it waits for
        began = max((ended[before] for before in spec.after), default=0.0)
        ended[spec.name] = began + took.get(spec.name, 0.0)
    return round(max(ended.values()), 3)


def deadline_of(
    workspace: Workspace, *, now: dt.datetime, known: dict[str, Any] | None = None
) -> Any:
    """Return when and how a workspace ends, as pages, mails and the API show it.

    `known` caches what is read, for the other workspaces of a list.
    """
    answers = asks_deadline.send(
        Workspace, workspace=workspace, now=now, known={} if known is None else known
    )
    [(_, deadline)] = answers
    return deadline


def trash_seconds_of(workspace: Workspace) -> int:
    """Return how long the trash keeps a workspace, in seconds; 0: deleted at once."""
    answers = asks_trash_seconds.send(Workspace, workspace=workspace)
    return max((int(seconds or 0) for _, seconds in answers), default=0)
