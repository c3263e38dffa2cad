"""The list of operations."""

from __future__ import annotations

from provisioner.engine.forms import OperationFilterForm
from provisioner.engine.models import Operation
from provisioner.engine.queries import operations_matching
from provisioner.web.lists.listing import Column, Listing

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
            *("created_at", "Asked for", "created_at", "created_at"),
            begins_descending=True,
        ),
        Column("ended_at", "", "ended_at", "ended_at", has_gaps=True),
        Column(
            *("seconds", "Took", "seconds", "took"),
            has_gaps=True,
            begins_descending=True,
        ),
        Column("status_code", "", "status_code"),
        Column("status_message", "", "status_message"),
    ),
    cells="engine/_cells.html",
    matching=operations_matching,
    usual="-created_at",
    form=OperationFilterForm,
)
