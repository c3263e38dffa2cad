"""The list of sites."""

from __future__ import annotations

from provisioner.sites.models import Site
from provisioner.sites.queries import site_overviews, sites_matching
from provisioner.web.lists.listing import Column, Listing

SITES = Listing[Site](
    name="sites",
    one="site",
    many="sites",
    columns=(
        Column("name", "Site", "site.name", "name"),
        Column("title", "", "site.title"),
        Column("health", "Health", lambda row: row.connection.health.value),
        Column("failure", "", "connection.first_failure"),
        Column(
            *("available_bytes", "Space"),
            lambda row: row.capacity and row.capacity.aggregate_available_bytes,
            "capacity__aggregate_available_bytes",
            has_gaps=True,
        ),
        Column("hosts", "Hosts", lambda row: " ".join(row.hosts)),
        Column(
            *("perforce", "Perforce", "site.perforce_server.name"),
            "perforce_server__name",
            is_unbroken=True,
        ),
        Column(
            *("templates", "Templates", "templates", "templates_count"),
            is_unbroken=True,
            is_number=True,
            begins_descending=True,
        ),
    ),
    cells="sites/_cells.html",
    matching=sites_matching,
    usual="name",
    dress=lambda user, some: site_overviews(some),
    quiet_below=10,
)
