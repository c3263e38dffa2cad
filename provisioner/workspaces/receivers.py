"""What workspaces say of their snapshots, and of events that people may read."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q, QuerySet, Window
from django.db.models.functions import RowNumber

from provisioner.accounts.models import User
from provisioner.audit_log.queries import register_visible
from provisioner.catalog.dependents import Dependent, register_dependent
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.retention import register_need
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import workspaces_visible_to


class Clones:
    """Workspaces need their snapshots until they are gone for good."""

    def rows(self, snapshots: Sequence[Snapshot]) -> QuerySet[Workspace]:
        workspaces = Workspace.objects.filter(snapshot__in=snapshots).order_by()
        return workspaces.exclude(state=Workspace.State.RETIRED)

    def by_name(
        self, rows: QuerySet[Workspace], *, most: int | None
    ) -> QuerySet[Workspace]:
        if most is not None:
            place = Window(
                RowNumber(), partition_by="snapshot", order_by=("name", "pk")
            )
            rows = rows.annotate(place=place).filter(place__lte=most)
        named = rows.select_related("owner").order_by("name", "pk")
        return named.only("name", "state", "is_pooled", "snapshot", "owner__username")


def _clones_of(template: Template) -> QuerySet[Workspace]:
    there = Workspace.objects.filter(template=template).order_by("name")
    return there.exclude(state=Workspace.State.RETIRED)


def _events_visible_to(user: User) -> Q:
    visible = workspaces_visible_to(user).order_by().values("pk")
    return Q(workspace__in=visible)


register_visible(_events_visible_to)
register_need(Clones())
register_dependent(
    Dependent(one="workspace", many="workspaces", rows=_clones_of),
)
