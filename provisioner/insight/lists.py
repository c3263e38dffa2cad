"""The list of processes."""

from __future__ import annotations

from provisioner.insight.forms import ProcessFilterForm
from provisioner.insight.models import Process
from provisioner.insight.queries import processes_matching
from provisioner.web.lists.listing import Chip, Column, Listing

PROCESSES = Listing[Process](
    name="processes",
    one="process",
    many="processes",
    columns=(
        Column("command", "Command", "command", "command"),
        Column("arguments", "", "arguments", goes_with="command"),
        Column("state", "State", lambda row: row.get_state_display(), "state"),
        Column("user", "User", "user", "user", is_unbroken=True),
        Column("since", "Since", "started_at", "started_at", is_unbroken=True),
        Column("client", "Client", "client", "client"),
        Column("host", "Host", "host", "host", is_unbroken=True),
        Column("program", "Program", "program", "program"),
        Column("server", "Server", "server.name", "server__name", is_unbroken=True),
        Column("number", "Number", "number", "number", is_number=True),
    ),
    cells="insight/_process_cells.html",
    matching=processes_matching,
    usual="since",
    form=ProcessFilterForm,
    reads=(
        *("command", "arguments", "state", "user", "started_at", "client", "host"),
        *("program", "number", "server__name"),
    ),
    chips=(
        Chip(label="Over 10 minutes", query={"state": "R", "at_least": "600"}),
        Chip(label="Idle for a day", query={"state": "I", "at_least": "86400"}),
    ),
    quiet_below=10,
    nothing="Nothing runs.",
)
