"""The list of what commands took."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.probes.forms import ProbeTimeFilterForm
from provisioner.probes.models import ProbeTime
from provisioner.probes.queries import times_matching
from provisioner.sites.models import PerforceServer
from provisioner.web.lists.listing import Chip, Column, Listing


def _matching(
    user: User, *, server: PerforceServer | None = None, **criteria: Any
) -> QuerySet[ProbeTime]:
    if server is not None:
        criteria["run__server"] = server
    return times_matching(user, **criteria)


TIMES = Listing[ProbeTime](
    name="probe-times",
    one="command",
    many="commands",
    columns=(
        Column("at", "At", "run.at", "run__at", begins_descending=True),
        Column("server", "Server", "run.server.name"),
        Column("command", "Command", "command"),
        Column("error", "", "error", goes_with="command"),
        Column(
            *("seconds", "Took", "seconds", "seconds"),
            has_gaps=True,
            is_number=True,
            begins_descending=True,
        ),
        Column("lapse", "First to last", "run.lapse_seconds", is_number=True),
        Column("host", "From", "run.host"),
    ),
    cells="probes/_time_cells.html",
    matching=_matching,
    usual="-at",
    page_size=20,  # the last hour of the usual commands
    is_bounded=True,
    form=ProbeTimeFilterForm,
    chips=(Chip(label="Errors", query={"failed": "true"}),),
    nothing="Nothing was measured yet.",
)
