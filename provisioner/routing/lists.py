"""The list of traffic at Perforce servers."""

from __future__ import annotations

from provisioner.routing.forms import TrafficFilterForm
from provisioner.routing.models import TrafficDay
from provisioner.routing.traffic import traffic_matching
from provisioner.web.lists.listing import Column, Listing

TRAFFIC = Listing[TrafficDay](
    name="perforce-traffic",
    one="row",
    many="rows",
    columns=(
        Column(
            *("day", "Day (UTC)", lambda row: row.day.isoformat(), "day"),
            is_unbroken=True,
            begins_descending=True,
        ),
        Column("server", "Server", "server.name", "server__name"),
        Column("purpose", "Purpose", "purpose", "purpose"),
        Column("account", "Account", "account.username", "account__username"),
        Column(
            *("commands", "Commands", "commands", "commands"),
            is_number=True,
            begins_descending=True,
        ),
        Column(
            *("synced_files", "Files synced", "synced_files", "synced_files"),
            is_number=True,
            begins_descending=True,
        ),
        Column(
            *("synced_bytes", "Synced", "synced_bytes", "synced_bytes"),
            is_number=True,
            begins_descending=True,
        ),
        Column(
            *("flushed_files", "Files flushed", "flushed_files", "flushed_files"),
            is_number=True,
            begins_descending=True,
        ),
    ),
    cells="routing/_traffic_cells.html",
    matching=traffic_matching,
    usual="-day",
    form=TrafficFilterForm,
    nothing="Nothing was asked of a Perforce server yet.",
)
