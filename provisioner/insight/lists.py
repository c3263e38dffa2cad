"""The lists of processes and of programs."""

from __future__ import annotations

from provisioner.insight.forms import ProcessFilterForm, ProgramFilterForm
from provisioner.insight.models import Process, ProgramUse
from provisioner.insight.queries import processes_matching, program_uses_matching
from provisioner.web.lists.listing import Chip, Column, Listing

PROGRAMS = Listing[ProgramUse](
    name="programs",
    one="use of a program",
    many="uses of programs",
    columns=(
        Column("program", "Program", "program", "program"),
        Column("release", "Release", "release", "release", is_unbroken=True),
        Column("user", "User", "user", "user", is_unbroken=True),
        Column("host", "Last host", "host", "host", is_unbroken=True),
        Column("seen", "Last seen", "last_seen_at", "last_seen_at", is_unbroken=True),
        Column("server", "Server", "server.name", "server__name", is_unbroken=True),
    ),
    cells="insight/_program_cells.html",
    matching=program_uses_matching,
    usual="-seen",
    form=ProgramFilterForm,
    reads=("program", "release", "user", "host", "last_seen_at", "server__name"),
    quiet_below=10,
    nothing="No program was seen yet.",
)

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
