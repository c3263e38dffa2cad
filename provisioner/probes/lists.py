"""The lists of rounds, and of what each command in them took."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.probes.forms import ProbeRoundFilterForm, ProbeTimeFilterForm
from provisioner.probes.models import ProbeRun, ProbeTime
from provisioner.probes.queries import Round, rounds_matching, times_matching
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

ROUNDS = Listing[ProbeRun](
    name="probe-rounds",
    one="round",
    many="rounds",
    columns=(
        Column("at", "At", "at", "at", begins_descending=True, is_unbroken=True),
        Column("server", "Server", "server.name", is_unbroken=True),
        Column(
            *("lapse", "First to last", "lapse_seconds", "lapse_seconds"),
            has_gaps=True,
            is_number=True,
            begins_descending=True,
        ),
        Column("gap", "Why not", "gap"),
        Column("host", "From", "host", is_unbroken=True),
        Column("change", "Newest change", "change", is_number=True),
    ),
    cells="probes/_round_cells.html",
    matching=rounds_matching,
    usual="-at",
    is_bounded=True,
    form=ProbeRoundFilterForm,
    chips=(
        Chip(label="Gaps", query={"outcome": Round.GAP}),
        Chip(label="With an error", query={"outcome": Round.FAILED}),
    ),
    quiet_below=0,
    nothing="No round was begun in this time.",
)
