"""Finding operations: those that a person may see, filtered."""

from __future__ import annotations

import datetime as dt
from functools import reduce
from operator import or_

from django.db.models import F, Prefetch, QuerySet

from provisioner.accounts.models import User
from provisioner.engine import subjects
from provisioner.engine.models import Operation, Step
from provisioner.lib.rows import with_words

LISTED = (
    *("kind", "state", "status_code", "status_message", "created_at", "ended_at"),
    *("requested_by__username", "subject__kind"),
)


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
    """Return visible operations that match all of what is given, newest first, with
    what a list shows of them. `took` is how long each took.

    `text` is searched in the names of subjects, and in what is said of failures;
    `by` is a user's name.
    """
    rows = subjects.paths(by="")
    names = [f"{row}__name" for row in rows]
    operations = with_words(
        operations_visible_to(user)
        .prefetch_related(None)
        .only(*LISTED, *names, *(f"{row}__site__name" for row in rows)),
        text,
        *(*names, "status_code", "status_message"),
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


def operations_visible_to(user: User) -> QuerySet[Operation]:
    """Return operations with steps: of the subjects that a person may see.

    Which these are, features say with what they register.
    """
    operations = Operation.objects.select_related("requested_by").prefetch_related(
        Prefetch("steps", queryset=Step.objects.order_by("position"))
    )
    for kind in subjects.kinds():
        operations = operations.select_related(f"subject__{kind.field}__site")
    if user.is_administrator:
        return operations
    visible = [kind.visible(user) for kind in subjects.kinds()]
    return operations.filter(reduce(or_, visible))
