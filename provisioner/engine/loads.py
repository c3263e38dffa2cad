"""What others do at a Perforce server while we work there, and its maintenance.

A feature above reads it; here it decides how much of ours may run. A reading counts for
a minute: if readings fail, nothing rests because of an old one.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.apps import apps

from provisioner.engine.models import ServerLoad
from provisioner.engine.subjects import Server
from provisioner.lib import clocks
from provisioner.lib.cron_windows import window_end
from provisioner.lib.prepared import Prepared

COUNTS_FOR = dt.timedelta(minutes=1)
COMMANDS_KEPT = 5


@dataclass(frozen=True, kw_only=True)
class OthersCommand:
    """A command of somebody else, and how long it has run."""

    user: str
    command: str
    seconds: int


@dataclass(frozen=True, kw_only=True)
class Load:
    """One reading of what others do at a server.

    `tables` are locked for writing, and `commands` of others run meanwhile, longest
    first. `maintenance` is a command that needs the server for itself, "" if none runs.
    """

    tables: tuple[str, ...] = ()
    commands: tuple[OthersCommand, ...] = ()
    maintenance: str = ""

    @property
    def others_wait(self) -> bool:
        return bool(self.tables and self.commands)


def record_load(server_id: int, load: Load, *, now: dt.datetime) -> None:
    """Save a reading in place of the one before."""
    before = ServerLoad.objects.filter(server=server_id).first()
    waited = _counting(before, now=now)
    since = waited.others_wait_since if waited is not None else None
    ServerLoad.objects.update_or_create(
        server_id=server_id,
        defaults={
            "read_at": now,
            "others_wait_since": (since or now) if load.others_wait else None,
            "tables": list(load.tables) if load.others_wait else [],
            "commands": [
                {"user": each.user, "command": each.command, "seconds": each.seconds}
                for each in load.commands[:COMMANDS_KEPT]
                if load.others_wait
            ],
            "maintenance": load.maintenance,
        },
    )


def maintenance_of(server: Server, *, now: dt.datetime) -> str:
    """Return a sentence why nothing may take a slot at a server, "" if it may.

    A sentence. The server has its `load` loaded, where many are asked about.
    """
    end = window_end(server.maintenance_windows, now=now)
    if end is not None:
        return (
            f"The Perforce server {server.name} is in maintenance until "
            f"{end:%H:%M} UTC on {end:%-d %b}."
        )
    load = _load_of(server, now=now)
    if load is not None and load.maintenance:
        return f"The Perforce server {server.name} is busy with {load.maintenance}."
    return ""


def others_wait_at(server: Server, *, now: dt.datetime) -> str:
    """Return who waits for what at a server, as a sentence; "" if nobody does."""
    load = _load_of(server, now=now)
    if load is None or load.others_wait_since is None:
        return ""
    return said_of(load, name=server.name)


def said_of(load: ServerLoad, *, name: str) -> str:
    """Return whom a reading found waiting, and for which tables."""
    first, *others = [
        f"{each['command']} of {each['user']} ({each['seconds']:,} s)"
        for each in load.commands
    ]
    more = f" and {len(others)} more" if others else ""
    are = "is" if len(load.tables) == 1 else "are"
    return (
        f"Others wait at the Perforce server {name}: {', '.join(load.tables)} {are} "
        f"locked, and {first}{more} cannot go on."
    )


def _servers(pk: int) -> Any:
    servers: Any = apps.get_model("sites", "PerforceServer").objects
    return servers.select_related("load", "slot_budget").filter(pk=pk).order_by()


_SERVERS: Prepared[Any] = Prepared(_servers, keeps_plan=True)


def server_with_load(server_id: int) -> Server:
    """Return a server with its load and its slot budget. One query."""
    server: Server
    [server] = _SERVERS.rows(server_id)
    return server


@dataclass(frozen=True, kw_only=True)
class Consideration:
    """What our next command at a server has to consider: sentences, "" for nothing.

    `why_stop` is the maintenance that it would disturb, `why_rest` says whom it would
    hold up.
    """

    why_stop: str
    why_rest: str


def consider(server_id: int) -> Consideration:
    """Return what our next command at a server has to consider."""
    server, now = server_with_load(server_id), clocks.database_now()
    return Consideration(
        why_stop=maintenance_of(server, now=now),
        why_rest=others_wait_at(server, now=now),
    )


def why_rest(server_id: int) -> str:
    """Return whom our next command would hold up, "" if nobody."""
    return consider(server_id).why_rest


def why_stop(server_id: int) -> str:
    """Return which maintenance our next command would disturb, "" if none."""
    return consider(server_id).why_stop


def _load_of(server: Server, *, now: dt.datetime) -> ServerLoad | None:
    return _counting(getattr(server, "load", None), now=now)


def _counting(load: ServerLoad | None, *, now: dt.datetime) -> ServerLoad | None:
    """Return a reading unless it is too old to count."""
    return load if load is not None and now - load.read_at < COUNTS_FOR else None
