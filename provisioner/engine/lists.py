"""The list of operations."""

from __future__ import annotations

from typing import Any

from django.db.models import F, Q, QuerySet

from provisioner.accounts.models import User
from provisioner.engine.forms import OperationFilterForm
from provisioner.engine.models import Operation, Subject
from provisioner.engine.queries import operations_visible_to
from provisioner.engine.subjects import kinds, paths
from provisioner.lib.rows import words_of
from provisioner.web.lists.listing import Chip, Column, Listing, searched

_SHOWN = (
    *("kind", "state", "status_code", "status_message", "created_at", "ended_at"),
    *("requested_by__username", "subject__kind"),
)


def _operations(user: User) -> QuerySet[Operation]:
    """Return visible operations with a list's columns, and how long each `took`."""
    rows = paths(by="")
    visible = operations_visible_to(user).prefetch_related(None).select_related(None)
    named = visible.select_related("requested_by", *rows)
    shown = named.only(*_SHOWN, *(f"{row}__name" for row in rows))
    return shown.annotate(took=F("ended_at") - F("created_at"))


_of_criteria = searched(
    _operations,
    by="requested_by__username",
    since="created_at__gte",
    until="created_at__lte",
)


def _matching(user: User, *, text: str = "", **criteria: Any) -> QuerySet[Operation]:
    found = _of_criteria(user, **criteria)
    for word in words_of(text):
        found = found.filter(_has(word))
    return found


def _has(word: str) -> Q:
    """Return the condition for a word.

    Names of each kind are searched once, and messages last: most are empty.
    """
    condition = Q()
    for kind in kinds():
        model: Any = Subject._meta.get_field(kind.field).related_model
        named = model._base_manager.filter(name__icontains=word)
        condition |= Q(subject__in=named.order_by().values("subject"))
    for field in ("status_code", "status_message"):
        condition |= Q(**{f"{field}__gt": "", f"{field}__icontains": word})
    return condition


OPERATIONS = Listing[Operation](
    name="operations",
    one="operation",
    many="operations",
    columns=(
        Column("id", "", "pk", "pk"),
        Column("kind", "What", "kind", "kind"),
        Column("subject", "", lambda row: str(row.subject)),
        Column("state", "State", "state", "state"),
        Column("requested_by", "By", "requested_by.username", "requested_by__username"),
        Column(
            *("created_at", "Requested", "created_at", "created_at"),
            begins_descending=True,
        ),
        Column("ended_at", "", "ended_at", "ended_at", has_gaps=True),
        Column(
            *("seconds", "Took", "seconds", "took"),
            has_gaps=True,
            is_number=True,
            begins_descending=True,
        ),
        Column("status_code", "", "status_code"),
        Column("status_message", "", "status_message"),
    ),
    cells="engine/_cells.html",
    matching=_matching,
    usual="-created_at",
    form=OperationFilterForm,
    chips=(
        Chip(label="Failed", query={"state": "failed"}),
        Chip(label="Running", query={"state": "running"}),
        Chip(label="Mine", query={"by": "{me}"}),
    ),
)
