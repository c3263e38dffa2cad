"""p4 spec -o: the definitions of the lab's forms. Source: p4 help spec."""

from __future__ import annotations

from provisioner.lab.perforce import specs
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.otherspecs import OTHER_FORMS
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specs import Field, Fields, SpecDefinition

_DEFINITIONS = {
    definition.kind: definition
    for definition in (
        specs.BRANCH,
        specs.CHANGE,
        specs.CLIENT,
        specs.DEPOT,
        specs.GROUP,
        specs.JOB,
        specs.LABEL,
        specs.PROTECT,
        specs.SPEC,
        specs.STREAM,
        specs.TRIGGERS,
        specs.TYPEMAP,
        specs.USER,
        *OTHER_FORMS,
    )
}


def spec(request: Request) -> None:
    """Answer `p4 spec -o`; definitions cannot be changed."""
    if not request.state.is_admin(request.user):
        raise CommandError(6185)
    if not request.has("o"):
        raise NotInLab("changing a spec")
    if len(request.args) != 1:
        raise CommandError(7198, usage=_USAGE)
    kind = request.args[0]
    if kind not in _DEFINITIONS:
        raise CommandError(6556, type=kind)
    request.show_form(_described(_DEFINITIONS[kind]), definition=specs.SPEC)


def _described(definition: SpecDefinition) -> Fields:
    """Return a definition as its form has it, without empty lists."""
    lists: dict[str, list[str]] = {
        "Fields": [_field_line(field) for field in definition.fields],
        "Words": _lines(definition, "words"),
        "Formats": [
            f"{field.tag} {field.option('seq')} {field.option('fmt')}"
            for field in definition.fields
            if field.option("seq") and field.option("fmt")
        ],
        "Values": _lines(definition, "val"),
        "Maxwords": _lines(definition, "maxwords"),
    }
    return {tag: lines for tag, lines in lists.items() if lines}


def _lines(definition: SpecDefinition, option: str) -> list[str]:
    return [
        f"{field.tag} {field.option(option)}"
        for field in definition.fields
        if field.option(option)
    ]


def _field_line(field: Field) -> str:
    length = field.option("len") or "0"
    return f"{field.code} {field.tag} {field.type} {length} {field.persistence}"


_USAGE = "spec -o type"

COMMANDS = (
    Command(names=("spec",), run=spec, usage=_USAGE, flags="oid", long=("repair",)),
)
