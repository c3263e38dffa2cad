"""Templates that are behind, as rows alone."""

from __future__ import annotations

import datetime as dt

from django.utils import timezone

from provisioner.catalog.freshness import Freshness, freshness_of_all
from provisioner.catalog.models import (
    Snapshot,
    SubmittedChange,
    Template,
    TemplateWatch,
)


def freshness_of(template: Template) -> Freshness | None:
    """Return a template's freshness, None where it is not known."""
    return freshness_of_all([template]).get(template.pk)


def known_to_be_behind(snapshot: Snapshot, *users: str) -> None:
    """Record a change by each of these after the snapshot, the first 12 minutes old."""
    template = snapshot.template
    server = template.site.perforce_server
    TemplateWatch.objects.update_or_create(
        template=template,
        defaults={"server": server, "view": template.view, "since": 1},
    )
    at = timezone.now() - dt.timedelta(minutes=12, seconds=5)
    for number, user in enumerate(users, start=snapshot.change + 1):
        change = SubmittedChange.objects.create(
            server=server,
            number=number,
            user=user,
            submitted_at=at,
            recorded_at=at,
            title="Work",
        )
        change.templates.add(template)
