"""What the slots of a worker are for: commands have slots of their own.

A build or a test takes hours. In the slots of everything else, a few of them would
keep everybody waiting who asks for a workspace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from provisioner.engine.queues import COMMANDS_PREFIX, HOST_PREFIX

SWEEPS = "sweeps"


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Slots of a worker, and the queues whose jobs they run.

    `queues` None: all queues of commands, or all others.
    """

    COMMANDS_LIKE: ClassVar[str] = f"{COMMANDS_PREFIX}%"

    queues: tuple[str, ...] | None
    runs_commands: bool
    slots: int

    def serves(self, queue: str) -> bool:
        """Return whether jobs of this queue run in these slots."""
        if queue.startswith(COMMANDS_PREFIX) != self.runs_commands:
            return False
        return self.queues is None or queue in self.queues


def pools_of(
    queues: Sequence[str] | None, *, slots: int, command_slots: int
) -> list[Pool]:
    """Return the pools of a worker that serves these queues, None: all.

    Whoever serves a site's hosts runs the commands there, too, unless there are no
    slots for commands. Every worker sweeps.
    """
    others: tuple[str, ...] | None = None
    commands: tuple[str, ...] | None = None
    if queues is not None:
        named = [name for name in queues if name.startswith(COMMANDS_PREFIX)]
        at_hosts = [
            COMMANDS_PREFIX + name.removeprefix(HOST_PREFIX)
            for name in queues
            if name.startswith(HOST_PREFIX)
        ]
        commands = tuple(dict.fromkeys([*named, *at_hosts]))
        others = tuple(dict.fromkeys([*(q for q in queues if q not in named), SWEEPS]))
    pools = [Pool(queues=others, runs_commands=False, slots=slots)]
    if command_slots and commands != ():
        pools.append(Pool(queues=commands, runs_commands=True, slots=command_slots))
    return pools
