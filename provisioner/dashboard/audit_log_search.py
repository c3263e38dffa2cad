"""Search the audit log for what a person may see."""

from __future__ import annotations

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.web.lists.listing import searched
from provisioner.workspaces.queries import workspaces_visible_to


def events_visible_to(user: User) -> QuerySet[Event]:
    """Return the events of workspaces that a person may see, newest first; all for
    administrators."""
    events = Event.objects.select_related("workspace", "template")
    if user.is_administrator:
        return events
    visible = workspaces_visible_to(user).order_by().values("pk")
    return events.filter(workspace__in=visible)


events_matching = searched(
    events_visible_to,
    *("message", "reason", "subject", "actor_name", "via"),
    actor="actor_name",
    kind="kind__startswith",
    since="at__gte",
    until="at__lte",
)
"""Return the visible events that match all of what is given, newest first.

`subject` and `actor` are names as they were then.
"""
