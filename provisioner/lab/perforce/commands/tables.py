"""p4 typemap and triggers: the two tables that only administrators change.

The first gives types; triggers are stored, and none is ever run.

Source: p4 help typemap, p4 help triggers.
"""

from __future__ import annotations

from provisioner.lab.perforce import filetypes
from provisioner.lab.perforce.commands.forms import read_form, refused
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.paths import pattern_matches
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specs import TRIGGERS, TYPEMAP, SpecDefinition
from provisioner.lab.perforce.specstore import find_spec, save_spec
from provisioner.lab.perforce.views import split_words

_TYPES = """
archive auth-check auth-check-2fa auth-check-sso auth-init-2fa auth-invalidate
auth-pre-2fa auth-set bgtask change-commit change-content change-failed
change-submit command edge-content edge-submit failed-back failed-over fix-add
fix-delete form-commit form-delete form-in form-out form-save graph-lfs-push
graph-push-complete graph-push-reference graph-push-reference-complete
graph-push-start heartbeat-dead heartbeat-missing heartbeat-resumed journal-rotate
journal-rotate-lock pull-archive push-commit push-content push-submit service-check
shelve-commit shelve-delete shelve-submit
"""
# The types of triggers that a server knows.
_TRIGGER_TYPES = frozenset(_TYPES.split())


def typemap(request: Request) -> None:
    """Answer `p4 typemap -o` and `-i`."""
    if not request.state.is_admin(request.user):
        raise CommandError(6185)
    if request.has("i"):
        lines = _form_lines(request, TYPEMAP)
        for line in lines:
            words = split_words(line)
            if words and filetypes.normalize_partial(words[0]) is None:
                raise CommandError(6165, type=words[0])
            if words and not words[1].lstrip("-").startswith("//"):
                raise refused("typemap", f"'{words[1]}' is not in depot syntax.")
        changed = _save(request, TYPEMAP, lines)
        request.say(6498 if changed else 6499, type="Typemap")
    else:
        _show(request, TYPEMAP)


def triggers(request: Request) -> None:
    """Answer `p4 triggers -o` and `-i`."""
    if not request.state.is_super(request.user):
        raise CommandError(6185)
    if request.has("i"):
        lines = _form_lines(request, TRIGGERS)
        for line in lines:
            words = split_words(line)
            if words and words[1] not in _TRIGGER_TYPES:
                raise CommandError(
                    4144,
                    because=6213,
                    type=words[1],
                    field="Triggers",
                    domain="triggers",
                    reason="",
                )
        changed = _save(request, TRIGGERS, lines)
        request.say(6496 if changed else 6497)
    else:
        _show(request, TRIGGERS)


def _show(request: Request, definition: SpecDefinition) -> None:
    if not request.has("o"):
        raise CommandError(7198, usage=f"{definition.kind} -o | -i")
    key = definition.fields[0].tag
    lines = _table(request.state.database, kind=definition.kind, key=key)
    request.show_form({key: lines}, definition=definition)


def _table(database: Database, *, kind: str, key: str) -> list[str]:
    spec = find_spec(database, kind=kind, name=kind)
    return spec.lines(key) if spec else []


def _form_lines(request: Request, definition: SpecDefinition) -> list[str]:
    lines = read_form(request, definition).get(definition.fields[0].tag, [])
    assert isinstance(lines, list)
    return lines


def _save(request: Request, definition: SpecDefinition, lines: list[str]) -> bool:
    kind, key = definition.kind, definition.fields[0].tag
    database = request.state.database
    if not lines and find_spec(database, kind=kind, name=kind) is None:
        return False
    return save_spec(database, kind=kind, name=kind, fields={key: lines})


def mapped_type(database: Database, *, path: str, found: str) -> str:
    """Return the type of a new file: the detected one, changed by the table.

    The last matching line counts; an excluded path keeps its detected type, and a line
    with modifiers alone adds them.
    """
    for line in reversed(_table(database, kind="typemap", key="TypeMap")):
        words = split_words(line)
        if not words:
            continue  # a comment
        kind, pattern = words
        if pattern_matches(pattern.removeprefix("-"), path):
            is_excluded = pattern.startswith("-")
            return found if is_excluded else filetypes.changed(found, kind) or found
    return found


COMMANDS = (
    Command(
        names=("typemap",),
        most_arguments=0,
        run=typemap,
        usage="typemap -o | -i",
        flags="oi",
    ),
    Command(
        names=("triggers",),
        most_arguments=0,
        run=triggers,
        usage="triggers -o | -i",
        flags="oi",
    ),
)
