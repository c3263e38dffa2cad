"""The list of runs."""

from __future__ import annotations

from provisioner.qualification.forms import RunFilterForm
from provisioner.qualification.models import QualificationRun
from provisioner.qualification.queries import runs_visible_to
from provisioner.web.lists.listing import Chip, Column, Listing, searched

RUNS = Listing[QualificationRun](
    name="qualification-runs",
    one="run",
    many="runs",
    columns=(
        Column("id", "Run", "pk", "pk", begins_descending=True),
        Column("profile", "Profile", "profile", "profile", is_unbroken=True),
        Column("measured_at", "Measured", "measured_at"),
        Column("state", "State", "state", "state"),
        Column("repeats", "Repeats", "repeats", is_number=True),
        Column("owner", "By", "owner.username", "owner__username"),
        Column(
            "created_at", "Began", "created_at", "created_at", begins_descending=True
        ),
        Column("note", "Note", "note"),
        Column("status_message", "", "status_message", goes_with="state"),
    ),
    cells="qualification/_cells.html",
    matching=searched(
        runs_visible_to, "perforce_server__name", "sandbox__name", "note"
    ),
    usual="-id",
    form=RunFilterForm,
    chips=(Chip(label="Failed", query={"state": QualificationRun.State.FAILED}),),
    quiet_below=10,
    nothing="Nothing was measured yet.",
)
