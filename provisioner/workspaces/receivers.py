"""Answers of workspaces to signals about templates, snapshots and events."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Any

from django.db.models import Count, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.dispatch import receiver

from provisioner.accounts.models import User
from provisioner.audit_log.queries import register_visible
from provisioner.catalog.dependents import Dependent, register_dependent
from provisioner.catalog.events import asks_usual_seconds
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.retention import register_need
from provisioner.lib.prepared import Prepared, among
from provisioner.routing.models import ITS_SERVER
from provisioner.sites.events import asks_clients
from provisioner.sites.models import PerforceServer, Site
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import workspaces_visible_to
from provisioner.workspaces.ready_times import usual_seconds


class Clones:
    """Workspaces need their snapshots until they are purged or independent."""

    def rows(self, snapshots: Sequence[Snapshot]) -> QuerySet[Workspace]:
        workspaces = Workspace.objects.filter(snapshot__in=snapshots).order_by()
        return workspaces.clones()

    def by_name(
        self, snapshots: Sequence[Snapshot], *, most: int | None
    ) -> list[Workspace]:
        keys = [snapshot.pk for snapshot in snapshots]
        return _BY_NAME.rows(keys, sys.maxsize if most is None else most)


_BY_NAME = Prepared(
    lambda snapshots, most: (
        Workspace.objects.filter(among("snapshot", snapshots))
        .clones()
        .annotate(
            number=Window(Count("pk"), partition_by="snapshot"),
            place=Window(RowNumber(), partition_by="snapshot", order_by=("name", "pk")),
        )
        .filter(place__lte=most)
        .select_related("owner")
        .order_by("name", "pk")
        .only("name", "state", "is_pooled", "snapshot", "owner__username")
    ),
    values=2,
)


def _clones_of(template: Template) -> QuerySet[Workspace]:
    there = Workspace.objects.filter(template=template).order_by("name")
    return there.there()


@receiver(asks_usual_seconds)
def seconds_to_ready(templates: list[Template], **kwargs: Any) -> dict[int, float]:
    """Return how long the workspaces of templates usually take to be ready, by id."""
    return usual_seconds(templates)


@receiver(asks_clients)
def clients_of_workspaces(
    servers: Collection[PerforceServer], site: Site | None, **kwargs: Any
) -> set[str]:
    """Return the names of the clients of workspaces at servers, of a site or of all."""
    there = Workspace.objects.there().alias(server=ITS_SERVER)
    there = there.filter(server__in=[each.pk for each in servers])
    if site is not None:
        there = there.filter(site=site)
    return {each.client_name for each in there} - {""}


def _events_visible_to(user: User) -> Q:
    visible = workspaces_visible_to(user).order_by().values("pk")
    return Q(workspace__in=visible)


register_visible(_events_visible_to)
register_need(Clones())
register_dependent(
    Dependent(one="workspace", many="workspaces", rows=_clones_of),
)
