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
    request.info(f"Protections {'saved' if changed else 'not changed'}.")


def protects(request: Request) -> None:
    """Answer `p4 protects`: the lines that concern a user, or their highest level."""
    user = request.options.get("u", request.user)
    if user != request.user and not request.state.is_super(request.user):
        raise CommandError(6185)
    access = request.state.access(user)
    for argument in request.args or [""]:
        pattern = parse_file_argument(request, argument).pattern if argument else ""
        if request.has("m"):
            _say_highest(request, access, pattern)
            continue
        for protection in access.protections:
            if not pattern or protection.may_meet(pattern):
                _list_one(request, protection)


def _say_highest(request: Request, access: protections.Access, pattern: str) -> None:
    if not pattern or "*" in pattern or "..." in pattern:
        level = access.highest_anywhere(pattern or "//...")
    else:
        level = access.level(pattern)
    if request.is_tagged:
        request.record({"permMax": level})
    else:
        request.info(level)


def _list_one(request: Request, protection: Protection) -> None:
    record: dict[str, Value] = {
        "perm": protection.level,
        "host": protection.host,
        protection.kind: protection.name,
        "line": protection.number,
        "depotFile": protection.path,
    }
    if protection.is_excluded:
        record["unmap"] = ""
    if request.is_tagged:
        request.record(record)
    else:
        sign = "-" if protection.is_excluded else ""
        request.info(
            f"{protection.level} {protection.kind} {protection.name} {protection.host}"
            f" {sign}{protection.path}"
        )


COMMANDS = (
    Command(
        names=("protect",),
        run=protect,
        usage="protect -o | -i",
        flags="oi",
        absent="d",
    ),
    Command(
        names=("protects",),
        run=protects,
        usage="protects [-m] [-u user] [file...]",
        flags="m",
        valued="u",
        absent="aghsMS",
    ),
)
