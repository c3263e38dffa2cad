"""What may be read, by whom, in as few queries as its page needs."""

from __future__ import annotations

from django.db.models import OuterRef, Prefetch, QuerySet, Subquery

from provisioner.accounts.models import User
from provisioner.workspaces.models import (
    Operation,
    Snapshot,
    Step,
    Template,
    Workspace,
)


def workspaces_visible_to(user: User) -> QuerySet[Workspace]:
    """Return the workspaces a person may see: theirs, or all for administrators."""
    workspaces = Workspace.objects.select_related(
        "owner", "template", "snapshot", "site__perforce_server"
    )
    return workspaces if user.is_administrator else workspaces.filter(owner=user)


def workspaces_of(user: User) -> QuerySet[Workspace]:
    """Return a person's own workspaces that are not retired, newest first."""
    return (
        workspaces_visible_to(user)
        .filter(owner=user)
        .exclude(state=Workspace.State.RETIRED)
    )


def available_snapshots() -> QuerySet[Snapshot]:
    """Return published snapshots, newest first."""
    return Snapshot.objects.filter(deleted_at__isnull=True)


def default_snapshot(template: Template) -> Snapshot | None:
    """Return the snapshot that a new workspace of the template gets, or None."""
    return available_snapshots().filter(template=template).first()


def templates_visible_to(user: User) -> QuerySet[Template]:
    """Return all templates, each with `default_snapshot_id` (None: not built yet)."""
    newest = available_snapshots().filter(template=OuterRef("pk"))
    return Template.objects.select_related("site__perforce_server").annotate(
        default_snapshot_id=Subquery(newest.values("pk")[:1]),
        default_change=Subquery(newest.values("change")[:1]),
        default_created_at=Subquery(newest.values("created_at")[:1]),
        default_have_count=Subquery(newest.values("have_count")[:1]),
    )


def snapshots_visible_to(user: User) -> QuerySet[Snapshot]:
    """Return all published snapshots with their templates."""
    return available_snapshots().select_related("template__site")


def operations_visible_to(user: User) -> QuerySet[Operation]:
    """Return operations with steps: of one's workspaces, all for administrators.

    Builds of templates are for everybody to follow: their result is for everybody.
    """
    operations = Operation.objects.select_related(
        "workspace__site", "template__site", "requested_by"
    ).prefetch_related(Prefetch("steps", queryset=Step.objects.order_by("position")))
    if user.is_administrator:
        return operations
    own = operations.filter(workspace__owner=user)
    return own | operations.filter(template__isnull=False)


def with_newest_operation(workspaces: QuerySet[Workspace]) -> QuerySet[Workspace]:
    """Give each workspace `newest_operations`: a list of one, or none; two queries."""
    newest = (
        Operation.objects.order_by("workspace_id", "-created_at", "-id")
        .distinct("workspace_id")
        .prefetch_related(Prefetch("steps", queryset=Step.objects.order_by("position")))
    )
    return workspaces.prefetch_related(
        Prefetch("operations", queryset=newest, to_attr="newest_operations")
    )


def latest_operation(subject: Workspace | Template) -> Operation | None:
    """Return the newest operation about a workspace or a template, with its steps."""
    return (
        subject.operations.select_related("requested_by")
        .prefetch_related(Prefetch("steps", queryset=Step.objects.order_by("position")))
        .order_by("-created_at", "-id")
        .first()
    )
