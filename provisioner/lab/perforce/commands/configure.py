"""p4 configure: show and change the server's settings."""

from __future__ import annotations

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.configurables import is_known, stored_name
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.request import Request


def configure(request: Request) -> None:
    """Answer `p4 configure show`, `set` and `unset`."""
    if not request.state.is_super(request.user):
        raise CommandError(6185)
    verb, *rest = request.args or [""]
    if verb == "show":
        _show(request, rest)
    elif verb in ("set", "unset") and len(rest) == 1:
        _change(request, rest[0], is_set=verb == "set")
    else:
        raise CommandError(7198, usage=_USAGE)


def _show(request: Request, names: list[str]) -> None:
    configurables = request.state.configurables
    stored = configurables.stored()
    chosen = names or sorted(stored)
    for name in chosen:
        server, _, bare = name.rpartition("#")
        _check_known(bare)
        kind = "configure" if name in stored else "default"
        value, server = configurables.text(name), server or "any"
        if request.is_tagged:
            request.record(
                {"Type": kind, "ServerName": server, "Name": bare, "Value": value}
            )
        else:
            request.info(f"{server}: {bare}={value} ({kind})")
    if not chosen:
        request.say(7634)


def _change(request: Request, text: str, *, is_set: bool) -> None:
    assigned, equals, value = text.partition("=")
    if is_set and not equals:
        raise CommandError(7198, usage=_USAGE)
    stored = stored_name(assigned)
    server, _, name = stored.rpartition("#")
    _check_known(name)
    request.state.configurables.set(stored, value if is_set else None)
    named = {"serverName": server or "any", "variableName": name, "comment": ""}
    if is_set:
        request.say(7605, variableValue=value, **named)
    else:
        request.say(7606, **named)


def _check_known(name: str) -> None:
    if not is_known(name):
        raise NotInLab(f"the configurable {name}")


_USAGE = "configure show [name] | set name=value | unset name"

COMMANDS = (Command(names=("configure",), run=configure, usage=_USAGE),)
