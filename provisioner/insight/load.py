"""Read what others do at a Perforce server: whom our next command would hold up."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from provisioner.engine.loads import Load, OthersCommand
from provisioner.gateways import registry
from provisioner.gateways.perforce.connection import is_ours
from provisioner.gateways.perforce.types import ServerProcess
from provisioner.insight.models import OF_THE_SERVER, Process
from provisioner.insight.reading import read_processes
from provisioner.lib.storable import storable
from provisioner.lib.times import duration_text
from provisioner.sites.models import PerforceServer

ANSWER_WITHIN_SECONDS = 10.0
# A table that is locked now and a second later was, as a rule, locked in between: no
# other command got to it. Most locks of a busy server last milliseconds.
LOOKS_APART_SECONDS = 1.0
# Younger commands have not waited yet.
HAS_WAITED_SECONDS = 2
# They lock all tables while they run. Source: p4 help admin.
_LOCKS_EVERYTHING = frozenset({"checkpoint", "dump", "journal"})


def read_load(server: PerforceServer) -> Load:
    """Read a server's processes and locked tables. Takes a second if some are locked.

    Raises: GatewayError.
    """
    gateway = registry.hasty_perforce(server, seconds=ANSWER_WITHIN_SECONDS)
    locked = gateway.processes.locked_tables()
    if locked:
        time.sleep(LOOKS_APART_SECONDS)
        locked &= gateway.processes.locked_tables()
    return load_of(read_processes(server), locked=locked, our_user=server.p4user)


def load_of(
    processes: Sequence[ServerProcess], *, locked: Collection[str], our_user: str
) -> Load:
    """Return what others do, of all processes and the tables that stay locked.

    A reading names tables, but not who has locked them. So all commands of others that
    run meanwhile count as waiting.
    """
    running = [
        process
        for process in processes
        if process.state in (Process.State.RUNNING, Process.State.PAUSED)
        and process.command not in OF_THE_SERVER
        and not is_ours(process.user, process.program, our_user=our_user)
    ]
    exclusive = [process for process in running if _locks_everything(process)]
    waiting = [
        OthersCommand(
            user=storable(process.user),
            command=storable(process.command),
            seconds=process.seconds,
        )
        for process in sorted(running, key=lambda each: -each.seconds)
        if process.seconds >= HAS_WAITED_SECONDS and process not in exclusive
    ]
    return Load(
        tables=tuple(sorted(map(storable, locked))),
        commands=tuple(waiting),
        maintenance=_said(exclusive[0]) if exclusive else "",
    )


def _locks_everything(process: ServerProcess) -> bool:
    words = f"{process.command} {process.arguments}".split()
    if words[:1] == ["admin"]:
        words = words[1:]
    return not _LOCKS_EVERYTHING.isdisjoint(words[:1])


def _said(process: ServerProcess) -> str:
    words = f"{process.command} {process.arguments}".split()[:2]
    if process.command != "admin":
        words = words[:1]
    for_ = duration_text(process.seconds)
    return storable(f"{' '.join(words)} of {process.user}, for {for_}")
