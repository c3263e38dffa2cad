"""Which snapshots and workspaces contain a change, as far as that is known."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from provisioner.accounts.models import User
from provisioner.catalog.models import (
    Snapshot,
    SubmittedChange,
    Template,
    TemplateWatch,
)
from provisioner.catalog.queries import available_snapshots, templates_to_choose_from
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import workspaces_of


@dataclass(frozen=True, kw_only=True)
class Holding:
    """A template beside a change.

    `is_certain` where it is known that the change touches its view: it was submitted
    since the template is followed. `snapshots` are those at it or later, newest first;
    `workspaces` are a person's own of these or of deleted ones.
    """

    template: Template
    is_certain: bool
    snapshots: list[Snapshot] = field(default_factory=list)
    workspaces: list[Workspace] = field(default_factory=list)


def holding(user: User, change: int) -> list[Holding]:
    """Return the templates that contain a change or may, those that do first.

    A template that is known to have nothing of it is left out. Five queries.
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
    snapshots, workspaces = defaultdict(list), defaultdict(list)
    later = available_snapshots().complete().filter(change__gte=change)
    for snapshot in later.filter(template__in=templates).order_by("-change", "-pk"):
        snapshots[snapshot.template_id].append(snapshot)
    own = workspaces_of(user).filter(snapshot__change__gte=change, snapshot__parts=[])
    for workspace in own.order_by("name"):
        workspaces[workspace.template_id].append(workspace)
    found = [
        Holding(
            template=template,
            is_certain=pk in touched,
            snapshots=snapshots[pk],
            workspaces=workspaces[pk],
        )
        for pk, template in templates.items()
        if pk in touched or (pk not in followed and pk in snapshots)
    ]
    return sorted(found, key=lambda one: (not one.is_certain, one.template.name))
