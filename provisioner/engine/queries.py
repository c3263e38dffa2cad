"""Finding operations: those that a person may see, filtered."""

from __future__ import annotations

import datetime as dt

from django.db.models import F, QuerySet

from provisioner.accounts.models import User
from provisioner.engine.models import Operation
from provisioner.lib.rows import with_words
from provisioner.workspaces.queries import operations_visible_to


def operations_matching(
    user: User,
    *,
    text: str = "",
    kind: str = "",
    state: str = "",
    by: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> QuerySet[Operation]:
    """Return visible operations that match all of what is given, newest first, without
    their steps and findings. `took` is how long each took.

    `text` is looked for in the names of workspaces and templates, and in what is said
    of failures; `by` is a user's name.
    """
    operations = with_words(
        operations_visible_to(user).prefetch_related(None).defer("findings"),
        text,
        *("workspace__name", "template__name", "status_code", "status_message"),
    )
    if kind:
        operations = operations.filter(kind=kind)
    if state:
        operations = operations.filter(state=state)
    if by:
        operations = operations.filter(requested_by__username=by)
    if since:
        operations = operations.filter(created_at__gte=since)
    if until:
        operations = operations.filter(created_at__lte=until)
    return operations.annotate(took=F("ended_at") - F("created_at"))
