"""Pools of a worker's slots.

Commands have slots of their own: builds and tests take hours, and a few would block all
requests for workspaces. Bisections, which anybody may start, do not take the slots of
builds. Deliveries have theirs, since addresses that people entered may not answer.
Load is read in slots of its own: while steps take all others, they have to give way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from provisioner.engine.queues import (
    BISECTIONS_PREFIX,
    COMMANDS_PREFIX,
    DELIVERIES,
    HOST_PREFIX,
    LOADS,
    PERFORCE,
    SANDBOXES_PREFIX,
    SERVER_HOST_PREFIX,
    STORAGE,
    own_slots_of,
)

SWEEPS = "sweeps"
DELIVERY_SLOTS = 4
LOAD_SLOTS = 4
SERVER_HOST_SLOTS = 1
SANDBOX_SLOTS = 2
# Only workers that name such a queue serve it: only they are at the right host.
_NAMED = {SERVER_HOST_PREFIX: SERVER_HOST_SLOTS, SANDBOXES_PREFIX: SANDBOX_SLOTS}


_SHARED = {STORAGE, PERFORCE, SWEEPS, DELIVERIES, LOADS}
_OF_PLACES = (
    HOST_PREFIX,
    COMMANDS_PREFIX,
    BISECTIONS_PREFIX,
    SERVER_HOST_PREFIX,
    SANDBOXES_PREFIX,
)


def unknown_queues(names: Iterable[str]) -> list[str]:
    """Return the names that are no queue's, such as a misspelled one."""
    return [
        name
        for name in names
        if name not in _SHARED
        and not any(name.startswith(prefix) and name != prefix for prefix in _OF_PLACES)
    ]


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Slots of a worker, and the queues whose jobs they run.

    `own` is one of OWN_SLOTS, "" for the common slots. `queues` is None for all queues
    that fit.
    """

    queues: tuple[str, ...] | None
    own: str = ""
    slots: int

    def serves(self, queue: str) -> bool:
        """Return whether jobs of this queue run in these slots."""
        if own_slots_of(queue) != self.own:
            return False
        return self.queues is None or queue in self.queues


def pools_of(
    queues: Sequence[str] | None,
    *,
    slots: int,
    command_slots: int,
    bisection_slots: int,
) -> list[Pool]:
    """Return the pools of a worker that serves these queues; None: all.

    A worker of a site's hosts runs the commands there as well, unless there are no
    slots for commands. Every worker runs sweeps and deliveries. One that reaches
    Perforce reads the load there. Only one that names the queue of a Perforce server's
    or sandboxes' host is taken to run there.
    """
    others: tuple[str, ...] | None = None
    if queues is not None:
        without = [name for name in queues if not own_slots_of(name)]
        others = tuple(dict.fromkeys([*without, SWEEPS]))
    pools = [
        Pool(queues=others, slots=slots),
        Pool(queues=(DELIVERIES,), own=DELIVERIES, slots=DELIVERY_SLOTS),
    ]
    for own, count in (
        (COMMANDS_PREFIX, command_slots),
        (BISECTIONS_PREFIX, bisection_slots),
    ):
        served = None if queues is None else _served(queues, own=own)
        if count and served != ():
            pools.append(Pool(queues=served, own=own, slots=count))
    for own, count in _NAMED.items():
        if served_there := _served(queues or (), own=own):
            pools.append(Pool(queues=served_there, own=own, slots=count))
    if queues is None or PERFORCE in queues:
        pools.append(Pool(queues=(LOADS,), own=LOADS, slots=LOAD_SLOTS))
    return pools


def _served(queues: Sequence[str], *, own: str) -> tuple[str, ...]:
    """Return the named queues of a kind, including those of named hosts."""
    named = [name for name in queues if own_slots_of(name) == own]
    at_hosts = [
        own + name.removeprefix(HOST_PREFIX)
        for name in queues
        if name.startswith(HOST_PREFIX) and own not in _NAMED
    ]
    return tuple(dict.fromkeys([*named, *at_hosts]))
