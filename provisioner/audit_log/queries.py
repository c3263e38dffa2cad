"""Search the part of the audit log that a person may see."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import Q, QuerySet

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.web.lists.listing import searched

_visible: list[Callable[[User], Q]] = []


def register_visible(condition: Callable[[User], Q]) -> None:
    """Register the condition for a feature's events that a person may see."""
    _visible.append(condition)


def events_visible_to(user: User) -> QuerySet[Event]:
    """Return the events about rows that a person may see, newest first.

    Administrators see all events.
    """
    events = Event.objects.select_related("workspace", "template")
    if user.is_administrator:
        return events
    visible = Q(pk__in=[])
    for condition in _visible:
        visible |= condition(user)
    return events.filter(visible)


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
