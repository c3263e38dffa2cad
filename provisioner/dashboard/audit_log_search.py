"""Reading the trail: what a person may see of it, filtered."""

from __future__ import annotations

import datetime as dt

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.lib.rows import with_words
from provisioner.workspaces.queries import workspaces_visible_to


def events_visible_to(user: User) -> QuerySet[Event]:
    """Return the events of workspaces that a person may see, newest first; all for
    administrators."""
    events = Event.objects.select_related("workspace", "template")
    if user.is_administrator:
        return events
    visible = workspaces_visible_to(user).order_by().values("pk")
    return events.filter(workspace__in=visible)


def events_matching(
    user: User,
    *,
    text: str = "",
    actor: str = "",
    kind: str = "",
    subject: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> QuerySet[Event]:
    """Return visible events that match all of what is given, newest first.

    `text` is looked for in sentences, reasons, names and means; `kind` is all of one
    or how some begin ("workspace_"); `subject` and `actor` are names as they were then.
    """
    events = with_words(
        events_visible_to(user),
        text,
        *("message", "reason", "subject", "actor_name", "via"),
    )
    if actor:
        events = events.filter(actor_name=actor)
    if kind:
        events = events.filter(kind__startswith=kind)
    if subject:
        events = events.filter(subject=subject)
    if since:
        events = events.filter(at__gte=since)
    if until:
        events = events.filter(at__lte=until)
    return events
