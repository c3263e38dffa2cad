"""The trail as a list."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.web.filter_forms import TrailFilterForm
from provisioner.web.lists.listing import Column, Listing
from provisioner.workspaces.models import Event
from provisioner.workspaces.trail_search import events_matching


def _matching(user: User, **criteria: Any) -> QuerySet[Event]:
    """Return events without their data, which only the API shows."""
    return events_matching(user, **criteria).defer("data")


TRAIL = Listing[Event](
    name="trail",
    one="event",
    many="events",
    columns=(
        Column("at", "When", "at", "at", is_unbroken=True, begins_descending=True),
        Column("kind", "", "kind"),
        Column("subject", "About", "subject"),
        Column("message", "What", "message"),
        Column("reason", "", "reason"),
        Column("actor", "Who", "actor_name", is_unbroken=True),
        Column("via", "From where", "via"),
        Column("ip", "", "ip"),
        Column("user_agent", "", "user_agent"),
        Column("subject_kind", "", "subject_kind"),
        Column("subject_id", "", "subject_id"),
    ),
    cells="administration/_trail_cells.html",
    matching=_matching,
    usual="-at",
    form=TrailFilterForm,
    page_size=100,
)
