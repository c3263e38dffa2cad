"""Finding operations: those that a person may see, filtered, and as a table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from django.db.models import F, QuerySet
from django.db.models.expressions import OrderBy

from provisioner.accounts.models import User
from provisioner.lib.tables import csv_lines
from provisioner.workspaces.models import Operation
from provisioner.workspaces.queries import operations_visible_to, with_words

COLUMNS = (
    *("id", "kind", "subject", "state", "requested_by", "created_at", "ended_at"),
    *("seconds", "status_code", "status_message"),
)
ORDERS: dict[str, tuple[str | OrderBy, ...]] = {
    "": ("-created_at", "-id"),
    "longest": (F("took").desc(nulls_last=True), "-id"),
}


def operations_matching(
    user: User,
    *,
    text: str = "",
    kind: str = "",
    state: str = "",
    by: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    order: str = "",
) -> QuerySet[Operation]:
    """Return visible operations that match all of what is given, newest first.

    `text` is looked for in the names of workspaces and templates, and in what is said
    of failures; `by` is a user's name. `order` "longest" puts those first that took
    longest.
    """
    operations = with_words(
        operations_visible_to(user).prefetch_related(None),
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
    took = F("ended_at") - F("created_at")
    return operations.annotate(took=took).order_by(*ORDERS.get(order, ORDERS[""]))


def as_csv(operations: QuerySet[Operation]) -> Iterator[str]:
    """Yield a table of operations line by line."""
    every = operations.defer("findings").iterator(chunk_size=1000)
    return csv_lines(
        COLUMNS,
        (
            (
                *(one.pk, one.kind, str(one.workspace or one.template), one.state),
                *(one.requested_by.username, _at(one.created_at), _at(one.ended_at)),
                "" if one.seconds is None else one.seconds,
                *(one.status_code, one.status_message),
            )
            for one in every
        ),
    )


def _at(moment: dt.datetime | None) -> str:
    if moment is None:
        return ""
    return moment.astimezone(dt.UTC).isoformat(timespec="milliseconds")
