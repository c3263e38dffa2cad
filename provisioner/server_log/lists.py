"""The lists of commands and messages in logs."""

from __future__ import annotations

from provisioner.server_log.forms import (
    LogCommandFilterForm,
    LogMessageFilterForm,
    TableUseFilterForm,
)
from provisioner.server_log.models import LogCommand, LogMessage, LogTableUse
from provisioner.server_log.queries import (
    commands_matching,
    messages_matching,
    table_uses_matching,
)
from provisioner.web.lists.listing import Chip, Column, Listing


def _number(name: str, label: str) -> Column:
    return Column(name, label, name, is_number=True)


MESSAGES = Listing[LogMessage](
    name="server-messages",
    one="message",
    many="messages",
    columns=(
        Column("text", "Message", "text"),
        Column("kind", "Kind", lambda row: row.get_kind_display()),
        Column(
            *("at", "Time", "at", "at"),
            is_unbroken=True,
            begins_descending=True,
        ),
        Column("operation", "Command", "operation"),
        Column("pid", "Process", "pid"),
        Column("server", "Server", "log.server.name"),
    ),
    cells="server_log/_message_cells.html",
    matching=messages_matching,
    usual="-at",
    form=LogMessageFilterForm,
    chips=(Chip(label="Errors", query={"days": "7", "kind": "error"}),),
    # The list is of a day: an empty one must lead to others.
    quiet_below=0,
    is_bounded=True,
    nothing="No message was logged in this time.",
)

COMMANDS = Listing[LogCommand](
    name="server-commands",
    one="command",
    many="commands",
    columns=(
        Column("command", "Command", "command"),
        Column("arguments", "", "arguments", goes_with="command"),
        Column("user", "User", "user"),
        Column("client", "", "client", goes_with="user"),
        Column("host", "", "host", goes_with="user"),
        Column("program", "", "program", goes_with="user"),
        Column(
            *("started_at", "Begun", "started_at", "started_at"),
            is_unbroken=True,
            begins_descending=True,
        ),
        Column(
            *("lapse_ms", "Took", "lapse_ms", "lapse_ms"),
            is_number=True,
            begins_descending=True,
        ),
        _number("wait_ms", "Waited for locks"),
        Column("held_ms", "", "held_ms", goes_with="wait_ms"),
        _number("cpu_ms", "Processor"),
        _number("sent_mb", "Sent"),
        Column("files_sent", "", "files_sent", goes_with="sent_mb"),
        _number("rows_scanned", "Rows scanned"),
        Column("server", "Server", "log.server.name"),
        Column("pid", "", "pid"),
        Column("has_failed", "", "has_failed"),
        Column("origin", "", "origin"),
    ),
    cells="server_log/_command_cells.html",
    matching=commands_matching,
    usual="-started_at",
    form=LogCommandFilterForm,
    chips=(
        Chip(label="30 seconds or more", query={"days": "7", "at_least": "30"}),
        Chip(label="120 seconds or more", query={"days": "30", "at_least": "120"}),
        Chip(
            label="1 million rows or more",
            query={"days": "30", "at_least_rows": "1000000"},
        ),
        Chip(label="Of Cloneyard", query={"days": "7", "whose": "ours"}),
    ),
    # The list is of a day: an empty one must lead to others.
    quiet_below=0,
    is_bounded=True,
    nothing="No command was logged in this time.",
)

TABLE_USES = Listing[LogTableUse](
    name="server-table-uses",
    one="use of a table",
    many="uses of tables",
    columns=(
        Column("table", "Table", "table"),
        Column("command", "Command", "command"),
        Column("command_id", "", "command_id"),
        Column("user", "User", "user", is_unbroken=True),
        Column("client", "", "client"),
        Column("origin", "", "origin"),
        Column(
            *("started_at", "Begun", "started_at", "started_at"),
            is_unbroken=True,
            begins_descending=True,
        ),
        Column("ended_at", "", "ended_at"),
        _number("write_held_ms", "Held for writing"),
        _number("read_held_ms", "Held for reading"),
        _number("write_wait_ms", "Waited to write"),
        _number("read_wait_ms", "Waited to read"),
        Column("server", "Server", "log.server.name"),
    ),
    cells="server_log/_use_cells.html",
    matching=table_uses_matching,
    usual="-started_at",
    form=TableUseFilterForm,
    quiet_below=0,
    is_bounded=True,
    nothing="No command waited for a table or held it for 100 ms or more.",
)
