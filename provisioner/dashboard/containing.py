"""Find which snapshots and workspaces contain a change."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from django.db.models import Count, Max

from provisioner.accounts.models import User
from provisioner.catalog.models import (
    Snapshot,
    SubmittedChange,
    Template,
    TemplateWatch,
)
from provisioner.catalog.queries import templates_to_choose_from
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import workspaces_of

TEMPLATES_SHOWN = 12
WORKSPACES_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class Holding:
    """A template and its relation to a change.

    `is_certain` if the change is known to touch its view, as it was submitted since the
    template is followed. `snapshots` counts those at the change or later, `newest` is
    the last change of them; `workspaces` are the person's own, or the first few.
    """

    template: Template
    is_certain: bool
    snapshots: int
    newest: int
    workspaces: list[Workspace]


def holding(user: User, change: int) -> list[Holding]:
    """Return the templates that contain a change, then those that may.

    Templates known not to contain it are left out. Five queries that read few rows,
    however many snapshots there are.
    """
    templates = {each.pk: each for each in templates_to_choose_from(user)}
    touched = set(
        SubmittedChange.objects.filter(
            number=change, templates__in=templates
        ).values_list("templates", flat=True)
    )
    followed = set(
        TemplateWatch.objects.filter(
            template__in=templates, since__lt=change
        ).values_list("template", flat=True)
    )
    later = Snapshot.objects.available().complete().filter(change__gte=change)
    counted = (
        later.filter(template__in=templates)
        .order_by()
        .values_list("template")
        .annotate(number=Count("pk"), newest=Max("change"))
    )
    snapshots = {pk: (number, newest) for pk, number, newest in counted}
    own = workspaces_of(user).filter(
        snapshot__change__gte=change, snapshot__is_complete=True
    )
    workspaces = defaultdict(list)
    for workspace in own.order_by("name")[:WORKSPACES_SHOWN]:
        workspaces[workspace.template_id].append(workspace)
    found = []
    for pk, template in templates.items():
        if pk in touched or (pk not in followed and pk in snapshots):
            number, newest = snapshots.get(pk, (0, 0))
            found.append(
                Holding(
                    template=template,
                    is_certain=pk in touched,
                    snapshots=number,
                    newest=newest,
                    workspaces=workspaces[pk],
                )
            )
    found.sort(key=lambda one: (not one.is_certain, one.template.name))
    return found[:TEMPLATES_SHOWN]
