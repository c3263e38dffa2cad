"""p4 protect, protects."""

from __future__ import annotations

from provisioner.lab.perforce import protections
from provisioner.lab.perforce.commands.forms import read_form, refused
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import parse_file_argument
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.protections import Protection
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specs import PROTECT
from provisioner.lab.perforce.specstore import save_spec
from provisioner.lab.perforce.views import split_words
from provisioner.lab.perforce.wire import Value


def protect(request: Request) -> None:
    """Answer `p4 protect -o` and `-i`."""
    if not request.state.is_super(request.user):
        raise CommandError(6185)
    if request.has("o"):
        lines = request.state.protection_lines()
        request.show_form({"Protections": list(lines)}, definition=PROTECT)
    elif request.has("i"):
        _save(request)
    else:
        raise CommandError(7198, usage="protect -o | -i")


def _save(request: Request) -> None:
    lines = read_form(request, PROTECT).get("Protections", [])
    assert isinstance(lines, list)
    for number, text in enumerate(lines, start=1):
        if not split_words(text):
            continue  # a comment
        if protections.parse_protection(text, number=number) is None:
            raise refused("protect", f"Line is not part of the lab: {text}")
    access = protections.Access(lines, user=request.user)
    if access.highest_anywhere() != "super":
        raise refused("protect", "Can't delete your own super access.")
    fields: dict[str, str | list[str]] = {"Protections": lines}
    changed = save_spec(
        request.state.database, kind="protect", name="protect", fields=fields
    )
    request.say(6450 if changed else 6451)


def protects(request: Request) -> None:
    """Answer `p4 protects`: the lines about a user, or their highest level.

    `-m` ignores paths and exclusions, `-M` does not.

    Source: p4 help protects.
    """
    lines = _lines(request)
    patterns = [_pattern(request, argument) for argument in request.args]
    if request.has("m") or request.has("M"):
        _say_highest(request, lines, patterns)
        return
    for line in lines:
        if not patterns or any(line.may_meet(pattern) for pattern in patterns):
            _list_one(request, line)


def _lines(request: Request) -> list[Protection]:
    """Return the lines about whoever the options name, by default the caller.

    Raises: CommandError.
    """
    chosen = [option for option in "agu" if request.has(option)]
    if len(chosen) > 1 or (request.has("a") and request.has("M")):
        raise CommandError(7198, usage=_PROTECTS_USAGE)
    if chosen and not _may_look_at_others(request):
        raise CommandError(6185)
    host = request.options.get("h", request.peer_address if request.has("H") else None)
    table = request.state.protection_lines()
    if chosen == ["a"]:
        found = protections.everybodys(table)
    elif chosen == ["g"]:
        found = protections.of_group(table, group=request.options["g"])
    else:
        user = request.options.get("u", request.user)
        return request.state.access(user, host=host).protections
    return [line for line in found if host is None or line.is_for_host(host)]


def _may_look_at_others(request: Request) -> bool:
    state = request.state
    if state.configurables.number("dm.protects.allow.admin"):
        return state.is_admin(request.user)
    return state.is_super(request.user)


def _pattern(request: Request, argument: str) -> str:
    """Return a file argument in depot syntax."""
    files = parse_file_argument(request, argument)
    if files.client is None:
        return files.pattern
    path = files.client.view.to_depot(files.pattern)
    if path is None:
        raise CommandError(6511, argc=argument)
    return path


def _say_highest(
    request: Request, lines: list[Protection], patterns: list[str]
) -> None:
    if request.has("M"):
        found = [
            protections.highest_allowed(lines, pattern)
            for pattern in patterns or ["//..."]
        ]
        level = max(found, key=protections.LEVELS.index)
    else:
        level = protections.highest(lines)
    request.report({"permMax": level}, 6596, perm=level)


def _list_one(request: Request, line: Protection) -> None:
    record: dict[str, Value] = {
        "perm": line.level,
        "host": line.host,
        **({"isgroup": ""} if line.kind == "group" else {}),
        "user": line.name,
        "line": line.number,
        "depotFile": line.path,
        **({"unmap": ""} if line.is_excluded else {}),
    }
    request.report(
        record,
        6584,
        perm=line.level,
        isgroup=line.kind,
        user=line.name,
        ipaddr=line.host,
        mapFlag="-" if line.is_excluded else "",
        depotFile=line.path,
    )


_PROTECTS_USAGE = (
    "protects [-a | -g group | -u user] [-h host | -H] [-m] [file...] |"
    " -M [-g group | -u user] [-h host | -H] [file...]"
)

COMMANDS = (
    Command(
        names=("protect",),
        most_arguments=0,
        run=protect,
        usage="protect -o | -i",
        flags="oi",
        absent="d",
    ),
    Command(
        names=("protects",),
        run=protects,
        usage=_PROTECTS_USAGE,
        flags="amMH",
        valued="ugh",
        absent="sSA",
    ),
)
