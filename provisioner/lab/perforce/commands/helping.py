"""p4 help: the lab's commands, and how each is called.

The words are the lab's; Perforce's own reference explains the commands.
"""

from __future__ import annotations

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request

# Filled by the package when all commands are known.
ALL: dict[str, Command] = {}
_REFERENCE = "https://help.perforce.com/helix-core/server-apps/cmdref/current/"


def show_help(request: Request) -> None:
    """Answer `p4 help`: about a command, or with the list of them.

    Raises: CommandError for an unknown command.
    """
    for name in request.args:
        if name not in ALL and name not in ("commands", "simple", "usage"):
            raise CommandError(10241, command=name)
    chosen = [ALL[name] for name in request.args if name in ALL]
    if not chosen:
        names = "\n\t".join(sorted(ALL))
        request.info(f"\n    The lab's server has these commands:\n\n\t{names}\n")
    for command in chosen:
        request.info(
            f"\n    {', '.join(command.names)}\n\n    p4 {command.usage}\n\n"
            f"\tSee {_REFERENCE}\n"
        )


COMMANDS = (
    Command(
        names=("help",),
        run=show_help,
        usage="help [command...]",
        is_open=True,
    ),
)
