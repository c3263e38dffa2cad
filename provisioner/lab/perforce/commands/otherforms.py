"""p4 ldap, remote, repo and server: forms that can be shown but not saved.

Tools that know every kind of form request them.

Source: the definitions in the published client; the values of new ones in `p4 help
ldap`, `remote`, `server`.
"""

from __future__ import annotations

from functools import partial

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.otherspecs import OTHER_FORMS
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specs import Fields, SpecDefinition

_VALUES: dict[str, Fields] = {
    "ldap": {
        "Host": "localhost",
        "Port": "389",
        "Encryption": "tls",
        "BindMethod": "search",
        "Options": "nodowncase nogetattrs norealminusername",
        "SearchScope": "subtree",
        "GroupSearchScope": "subtree",
    },
    "remote": {
        "Address": "localhost:1666",
        "Options": "unlocked nocompress copyrcs",
        "DepotMap": ["//... //..."],
    },
    "repo": {},
    "server": {"Type": "server", "Services": "standard"},
}
_OWNERS = {"remote": "Owner", "repo": "Owner"}
_FOR_SUPER = ("ldap", "server")


def show(request: Request, *, definition: SpecDefinition) -> None:
    """Answer `-o NAME` with a new form; refuse to save or delete one by name."""
    kind = definition.kind
    if kind in _FOR_SUPER and not request.state.is_super(request.user):
        raise CommandError(6185)
    if not request.has("o"):
        raise NotInLab(f"changing a {kind}")
    name = request.args[0] if request.args else "new"
    fields: Fields = {definition.fields[0].tag: name, **_VALUES[kind]}
    if kind in _OWNERS:
        fields[_OWNERS[kind]] = request.user
    request.show_form(fields, definition=definition)


COMMANDS = tuple(
    Command(
        names=(definition.kind,),
        most_arguments=1,
        run=partial(show, definition=definition),
        usage=f"{definition.kind} -o name",
        flags="oidf",
    )
    for definition in OTHER_FORMS
)
