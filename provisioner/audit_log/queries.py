"""Search the part of the audit log that a person may see."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Upper

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.lib.rows import words_of
from provisioner.web.lists.listing import searched

# A page searches so many for words in 40 ms (docs/scale.md).
SEARCHED = 50_000
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


_by_criteria = searched(
    events_visible_to,
    actor="actor_name",
    kind="kind__startswith",
    since="at__gte",
    until="at__lte",
)


def events_matching(user: User, *, text: str = "", **criteria: Any) -> QuerySet[Event]:
    """Return the visible events that match all of what is given, newest first.

    Each has every word of `text`. `subject` and `actor` are names as they were then.
    """
    events = _by_criteria(user, **criteria)
    for word in words_of(text):
        events = events.filter(searched__contains=Upper(Value(word)))
    return events


def newest_since() -> dt.datetime | None:
    """Return when the newest SEARCHED events begin, or None if there are no others."""
    times = Event.objects.order_by("-at", "-pk").values_list("at", flat=True)
    return times[SEARCHED : SEARCHED + 1].first()
