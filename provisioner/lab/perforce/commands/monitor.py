"""p4 monitor (show, terminate, pause, resume, clear), and p4 lockstat."""

from __future__ import annotations

import time
from collections.abc import Callable

from provisioner.lab.perforce.commands.registry import Command, parse_options
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.processes import ProcessTable, Running
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.wire import Value


def monitor(request: Request) -> None:
    """Answer `p4 monitor`; options may follow the verb."""
    verb, *rest = request.args or [""]
    table = ProcessTable(request.state.config.root)
    if not request.state.configurables.number("monitor"):
        raise CommandError(7305)
    if verb == "show":
        _show(request, table, rest)
    elif verb in _ACTS and len(rest) == 1:
        _act(request, table, verb, rest[0])
    elif verb == "realtime":
        raise NotInLab(f"monitor {verb}")
    else:
        raise CommandError(7198, usage=_USAGE)


def _show(request: Request, table: ProcessTable, arguments: list[str]) -> None:
    later, rest = parse_options(_COMMAND, arguments)
    given = {**request.options, **later}
    if rest or given.get("s", "R") not in tuple("RTPBFI"):
        raise CommandError(7198, usage=_USAGE)
    if given.keys() & set("ale") and not request.state.is_super(request.user):
        raise CommandError(6185)
    for command in table.all():
        seconds = max(0, int(time.time() - command.started))
        lapse = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        status = _status(table, command)
        if given.get("s", status) != status:
            continue
        if request.is_tagged:
            request.record(_record(command, status, lapse, set(given)))
        else:
            text = f" {command.arguments}" if given.keys() & set("al") else ""
            request.info(
                f"{command.number:5} {status} {command.user:10} {lapse}"
                f" {command.command}{text}"
            )


def _status(table: ProcessTable, command: Running) -> str:
    if table.is_terminated(command.number):
        return "T"
    if command.is_idle:
        return "I"
    return "P" if table.is_paused(command.number) else "R"


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


# What is done to a command, and what is said then.
_ACTS: dict[str, tuple[Callable[[ProcessTable, int], None], int]] = {
    "terminate": (ProcessTable.terminate, 6552),
    "pause": (ProcessTable.pause, 6753),
    "resume": (ProcessTable.resume, 6754),
    "clear": (ProcessTable.clear, 6551),
}


def _act(request: Request, table: ProcessTable, verb: str, text: str) -> None:
    """Act on one command, or clear all. Source: p4 help monitor; the message of
    p4 configure help db.monitor.minruntime has its sibling's severity."""
    do, said = _ACTS[verb]
    if verb == "clear" and text == "all":
        commands = table.all()
    else:
        found = table.find(int(text)) if text.isdecimal() else None
        if found is None:
            raise CommandError(7306, id=text)
        commands = [found]
    if not request.state.is_super(request.user) and not (
        verb == "terminate" and commands[0].user == request.user
    ):
        raise CommandError(6185)
    youngest = request.state.configurables.number("db.monitor.minruntime")
    for command in commands:
        if verb == "terminate" and time.time() - command.started < youngest:
            request.say(6553, id=command.number, minRuntime=youngest)
            continue
        do(table, command.number)
        request.say(said, id=command.number)


def lockstat(request: Request) -> None:
    """Answer `p4 lockstat`: the tables that are locked, or with -c and -C clients.

    Source: p4 help lockstat; the messages 6619 and 6620 of the catalog.
    """
    if not request.state.is_super(request.user):
        raise CommandError(6185)
    locks = request.locks.held_by_others()
    wanted = request.options.get("c")
    for name, is_written in sorted(locks.items()):
        kind, _, client = name.partition("/")
        is_client = kind == "clients"
        if wanted is not None or request.has("C"):
            is_shown = is_client and wanted in (None, client)
        else:
            is_shown = not is_client
        if is_shown:
            request.say(6619 if is_written else 6620, name=client or name)


_USAGE = "monitor { show | terminate | clear | pause | resume }"

_COMMAND = Command(
    names=("monitor",), run=monitor, usage=_USAGE, flags="ale", valued="s", absent="L"
)
COMMANDS = (
    _COMMAND,
    Command(
        names=("lockstat",),
        run=lockstat,
        usage="lockstat [ -c client | -C ]",
        flags="C",
        valued="c",
        most_arguments=0,
    ),
)
