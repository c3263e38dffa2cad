"""The definition of a command, and the parsing of its options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.request import Request


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of the server.

    `flags` are option letters without a value, `valued` those with one, `absent` those
    that exist in Perforce and not here. `most_arguments` is None if any number may
    follow the options. `is_open` commands need no login; `uses_client` ones update the
    client's access date.
    """

    names: tuple[str, ...]
    run: Callable[[Request], None]
    usage: str
    flags: str = ""
    valued: str = ""
    absent: str = ""
    long: tuple[str, ...] = ()
    most_arguments: int | None = None
    is_open: bool = False
    uses_client: bool = False


def parse_options(
    command: Command, arguments: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """Split arguments into options and the rest.

    Raises: CommandError for an unknown option or too many arguments, NotInLab for a
    known option that the lab lacks.
    """
    options: dict[str, str] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            if name not in command.long:
                raise NotInLab(f"{command.names[0]} --{name}")
            options[name] = value
            continue
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in command.valued:
                if not letters and not rest:
                    raise CommandError(7198, usage=command.usage)
                options[letter] = letters or rest.pop(0)
                letters = ""
            elif letter in command.flags:
                options[letter] = ""
            elif letter in command.absent:
                raise NotInLab(f"{command.names[0]} -{letter}")
            else:
                raise CommandError(
                    7198, usage=f"{command.usage}\nInvalid option: -{letter}."
                )
    if command.most_arguments is not None and len(rest) > command.most_arguments:
        raise CommandError(7198, usage=command.usage)
    return options, rest
