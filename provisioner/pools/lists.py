"""Lists of warm pools, and of the members of one."""

from __future__ import annotations

from typing import Any

from provisioner.pools import queries
from provisioner.pools.actions import pool_delete
from provisioner.pools.models import Pool
from provisioner.web.lists.acts import Act
from provisioner.web.lists.listing import Column, Listing, searched
from provisioner.workspaces.models import Workspace


class Delete(Act[Pool]):
    name, label, done = "delete", "Delete", "Deleted"
    lead = "Workspaces that were claimed from them stay with their owners."
    is_dangerous = True

    def do(self, row: Pool, **told: Any) -> int:
        members = queries.members_of(row).count()
        pool_delete(by=self.by, pool=row)
        return members

    def says(self, row: Pool, result: int) -> str:
        if result == 1:
            return "Its 1 member is retired."
        return f"Its {result} members are retired."


POOLS = Listing[Pool](
    name="pools",
    one="pool",
    many="pools",
    columns=(
        Column("template", "Template", "pool.template.name", "template__name"),
        Column("site", "", "pool.site.name", "site__name"),
        Column("owner", "For", "pool.owner.username", "owner__username"),
        Column("purpose", "", "pool.purpose", "purpose"),
        Column("ready", "Ready", "ready"),
        Column("wanted", "", "wanted"),
        Column("making", "", "making"),
        Column("failed", "", "failed"),
        Column("unique_bytes", "Space", "unique_bytes", is_number=True),
        Column("warm", "Warm and cold", "warm"),
        Column("cold", "", "cold"),
        Column("seconds_saved", "Saved", "seconds_saved", is_number=True),
    ),
    cells="pools/_cells.html",
    matching=searched(
        lambda user: queries.all_pools(),
        *("template__name", "site__name", "owner__username", "purpose"),
    ),
    usual="template",
    dress=lambda user, some: queries.overviews_of(some),
    acts=(Delete,),
    quiet_below=10,
    nothing="There is no warm pool. Every workspace is created on request.",
)


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
