"""The lists of processes, of programs and of advice about clients."""

from __future__ import annotations

from collections.abc import Callable

from provisioner.insight.client_advice import (
    AdvisedClient,
    advised_clients,
    with_findings,
)
from provisioner.insight.forms import (
    ClientAdviceFilterForm,
    ProcessFilterForm,
    ProgramFilterForm,
)
from provisioner.insight.models import ListedClient, Process, ProgramUse
from provisioner.insight.queries import processes_matching, program_uses_matching
from provisioner.web.lists.listing import Chip, Column, Listing


def _each(name: str) -> Callable[[AdvisedClient], str]:
    return lambda row: " ".join(getattr(each, name) for each in row.findings)


ADVISED_CLIENTS = Listing[ListedClient](
    name="client-advice",
    one="client with advice",
    many="clients with advice",
    columns=(
        Column("client", "Client", "client.name", "name"),
        Column("kind", "", "client.kind", goes_with="client"),
        Column(
            *("advice", "Advice"),
            lambda row: ", ".join(each.title for each in row.findings),
        ),
        Column("saw", "", _each("saw"), goes_with="advice"),
        Column("do", "", _each("advice"), goes_with="advice"),
        Column("source", "", _each("source"), goes_with="advice"),
        Column("owner", "Owner", "client.owner", "owner", is_unbroken=True),
        Column("host", "", "client.host", goes_with="owner"),
        Column(
            *("accessed", "Last used", "client.accessed_at", "accessed_at"),
            has_gaps=True,
            is_unbroken=True,
        ),
        Column(
            *("opened", "Opened", "client.opened_files", "opened_files"),
            is_number=True,
            begins_descending=True,
        ),
        Column(
            *("server", "Server", "client.server.name", "server__name"),
            is_unbroken=True,
        ),
    ),
    cells="insight/_client_cells.html",
    matching=advised_clients,
    usual="accessed",
    form=ClientAdviceFilterForm,
    dress=with_findings,
    quiet_below=10,
    nothing="Nothing is advised about any client.",
)

PROGRAMS = Listing[ProgramUse](
    name="programs",
    one="use of a program",
    many="uses of programs",
    columns=(
        Column("program", "Program", "program", "program"),
        Column("release", "Release", "release", "release__numbers", is_unbroken=True),
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
