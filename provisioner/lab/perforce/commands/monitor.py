"""p4 monitor show and terminate."""

from __future__ import annotations

import time

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.processes import ProcessTable, Running
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.wire import Value


def monitor(request: Request) -> None:
    """Answer `p4 monitor show` and `terminate`; options may stand after the verb."""
    verb, *rest = request.args or [""]
    table = ProcessTable(request.state.config.root)
    if not request.state.configurables.number("monitor"):
        raise CommandError(7305)
    if verb == "show":
        _show(request, table, "".join(rest))
    elif verb == "terminate" and len(rest) == 1:
        _terminate(request, table, rest[0])
    elif verb in ("clear", "pause", "resume", "realtime"):
        raise NotInLab(f"monitor {verb}")
    else:
        raise CommandError(7198, usage=_USAGE)


def _show(request: Request, table: ProcessTable, options: str) -> None:
    given = set(options.replace("-", "")) | set(request.options)
    if not given <= set("ale"):
        raise NotInLab(f"monitor show {options}")
    if given and not request.state.is_super(request.user):
        raise CommandError(6185)
    for command in table.all():
        seconds = max(0, int(time.time() - command.started))
        lapse = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        status = "T" if table.is_terminated(command.number) else "R"
        if request.is_tagged:
            request.record(_record(command, status, lapse, given))
        else:
            text = f" {command.arguments}" if given & set("al") else ""
            request.info(
                f"{command.number:5} {status} {command.user:10} {lapse}"
                f" {command.command}{text}"
            )


def _record(
    command: Running, status: str, lapse: str, given: set[str]
) -> dict[str, Value]:
    record: dict[str, Value] = {
        "id": command.number,
        "status": status,
        "user": command.user,
        "time": lapse,
        "command": command.command,
    }
    if given & set("al"):
        record["args"] = command.arguments
    if "e" in given:
        record |= {
            "client": command.client,
            "host": command.address,
            "prog": command.program,
        }
    return record


def _terminate(request: Request, table: ProcessTable, text: str) -> None:
    command = table.find(int(text)) if text.isdecimal() else None
    if command is None:
        raise CommandError(7306, id=text)
    if command.user != request.user and not request.state.is_super(request.user):
        raise CommandError(6185)
    table.terminate(command.number)
    request.say(6552, id=command.number)


_USAGE = "monitor show [-a -l -e] | terminate id"

COMMANDS = (Command(names=("monitor",), run=monitor, usage=_USAGE, flags="ale"),)
