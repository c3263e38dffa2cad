"""The list of drills."""

from __future__ import annotations

from provisioner.drills.forms import DrillFilterForm
from provisioner.drills.models import Drill
from provisioner.drills.queries import drills_matching
from provisioner.web.lists.listing import Chip, Column, Listing

DRILLS = Listing[Drill](
    name="drills",
    one="drill",
    many="drills",
    columns=(
        Column(
            *("requested_at", "Begun", "requested_at", "requested_at"),
            begins_descending=True,
        ),
        Column(
            "server",
            "Server",
            "sandbox.perforce_server.name",
            "sandbox__perforce_server__name",
        ),
        Column("site", "", "sandbox.site.name", goes_with="server"),
        Column("outcome", "Outcome", "outcome"),
        Column("trouble", "", "trouble", goes_with="outcome"),
        Column("finding", "", "finding", goes_with="outcome"),
        Column("lost_seconds", "Age of the copy", "lost_seconds", is_number=True),
        Column("took_seconds", "Time to answer", "took_seconds", is_number=True),
        Column("change", "Change", "change", "change", has_gaps=True, is_number=True),
        Column("sandbox", "", "sandbox.name", goes_with="requested_at"),
    ),
    cells="drills/_cells.html",
    matching=drills_matching,
    usual="-requested_at",
    form=DrillFilterForm,
    chips=(Chip(label="Not passed", query={"outcome": "other"}),),
    quiet_below=10,
    nothing="No drill was made yet.",
)
