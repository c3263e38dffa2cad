"""p4 admin: of all its parts, who has to change their password."""

from __future__ import annotations

from provisioner.lab.perforce import auth
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specstore import all_specs

_USAGE = "admin resetpassword -a | -u user"


def admin(request: Request) -> None:
    """Answer `p4 admin resetpassword`.

    Source: p4 help admin; "Password administration" of the administrator's guide.
    """
    if request.args[:1] != ["resetpassword"]:
        raise NotInLab(" ".join(["p4 admin", *request.args[:1]]))
    database = request.state.database
    if not request.state.is_super(request.user):
        raise CommandError(6185)
    match request.args[1:]:
        case ["-a"]:
            names = [spec.name for spec in all_specs(database, kind="user")]
        case ["-u", name]:
            names = [name]
        case _:
            raise CommandError(7198, usage=_USAGE)
    for name in names:
        auth.require_new_password(database, user=name)


COMMANDS = (Command(names=("admin",), run=admin, usage=_USAGE),)
