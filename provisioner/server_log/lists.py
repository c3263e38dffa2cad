"""The list of commands in logs."""

from __future__ import annotations

from provisioner.server_log.forms import LogCommandFilterForm
from provisioner.server_log.models import LogCommand
from provisioner.server_log.queries import commands_matching
from provisioner.web.lists.listing import Chip, Column, Listing


def _number(name: str, label: str) -> Column:
    return Column(name, label, name, name, is_number=True, begins_descending=True)


COMMANDS = Listing[LogCommand](
    name="server-commands",
    one="command",
    many="commands",
    columns=(
        Column("command", "Command", "command", "command"),
        Column("arguments", "", "arguments", goes_with="command"),
        Column("user", "User", "user", "user", is_unbroken=True),
        Column(
            *("started_at", "Begun", "started_at", "started_at"),
            is_unbroken=True,
            begins_descending=True,
        ),
        _number("lapse_ms", "Took"),
        _number("wait_ms", "Waited for locks"),
        Column("held_ms", "", "held_ms", goes_with="wait_ms"),
        _number("cpu_ms", "Processor"),
        _number("sent_mb", "Sent"),
        Column("files_sent", "", "files_sent", goes_with="sent_mb"),
        Column("client", "Client", "client", "client"),
        Column("host", "", "host", goes_with="client"),
        Column("program", "", "program", goes_with="client"),
        Column("server", "Server", "log.server.name"),
        Column("pid", "", "pid"),
        Column("has_failed", "", "has_failed"),
    ),
    cells="server_log/_command_cells.html",
    matching=commands_matching,
    usual="-started_at",
    form=LogCommandFilterForm,
    chips=(
        Chip(label="30 seconds or more", query={"days": "7", "at_least": "30"}),
        Chip(label="120 seconds or more", query={"days": "30", "at_least": "120"}),
    ),
    quiet_below=10,
    nothing="No command was logged in the last 24 hours.",
)
