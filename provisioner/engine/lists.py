"""The list of operations."""

from __future__ import annotations

from typing import Any

from django.db.models import F, QuerySet

from provisioner.accounts.models import User
from provisioner.engine.forms import OperationFilterForm
from provisioner.engine.models import Operation
from provisioner.engine.queries import operations_visible_to
from provisioner.engine.subjects import paths
from provisioner.web.lists.listing import Chip, Column, Listing, searched

_SHOWN = (
    *("kind", "state", "status_code", "status_message", "created_at", "ended_at"),
    *("requested_by__username", "subject__kind"),
)


def _operations(user: User) -> QuerySet[Operation]:
    """Return visible operations with a list's columns, and how long each `took`."""
    names = (
        f"{row}__{name}" for row in paths(by="") for name in ("name", "site__name")
    )
    visible = operations_visible_to(user).prefetch_related(None).only(*_SHOWN, *names)
    return visible.annotate(took=F("ended_at") - F("created_at"))


def _matching(user: User, **criteria: Any) -> QuerySet[Operation]:
    find = searched(
        _operations,
        *(f"{row}__name" for row in paths(by="")),
        *("status_code", "status_message"),
        by="requested_by__username",
        since="created_at__gte",
        until="created_at__lte",
    )
    return find(user, **criteria)


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
