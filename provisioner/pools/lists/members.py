"""The list of members of a warm pool."""

from __future__ import annotations

from provisioner.pools import queries
from provisioner.pools.models import Pool
from provisioner.web.lists.listing import Column, Listing, searched
from provisioner.workspaces.models import Workspace


def members_of(pool: Pool) -> Listing[Workspace]:
    """Return the list of members of one pool."""
    return Listing(
        name="pool-members",
        one="member",
        many="members",
        columns=(
            Column("name", "Member", "name", "name"),
            Column("state", "State", "state", "state"),
            Column("status_message", "", "status_message"),
            Column("change", "Change", "snapshot.change", "snapshot__change"),
            Column("created_at", "Created", "created_at", "created_at"),
            Column(
                *("unique_bytes", "Space", "unique_bytes", "unique_bytes"),
                has_gaps=True,
                is_number=True,
                begins_descending=True,
            ),
            Column("operation", "Operation", None),
        ),
        cells="pools/_member_cells.html",
        matching=searched(
            lambda user: (
                queries.members_of(pool)
                .select_related("snapshot", "site")
                .prefetch_related("subject__operations")
            ),
            *("name", "state", "status_message"),
        ),
        usual="created_at",
        quiet_below=10,
        nothing="The pool is empty.",
    )
