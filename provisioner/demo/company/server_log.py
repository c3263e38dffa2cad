"""A day of the studio's server log, with a jam in it, and the clients at the server."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from django.db import transaction

from provisioner.accounts.models import User
from provisioner.demo.company.people import People
from provisioner.demo.company.places import Places
from provisioner.demo.company.studio import Studio
from provisioner.gateways.perforce.connection import PROGRAM
from provisioner.insight.models import ClientListing, ListedClient
from provisioner.server_log.models import ServerLog
from provisioner.server_log.records import (
    LoggedCommand,
    LogMessage,
    MessageKind,
    ReadCounts,
    TableUse,
)
from provisioner.server_log.storing import Batch
from provisioner.sites.models import PerforceServer

DAY = dt.timedelta(days=1)
COMMANDS_EACH = 18
P4V, P4 = "P4V/LINUX26X86_64/2025.2/2800000", "p4/2024.1/LINUX26X86_64/2596294"
BUILD_BOT, POLLER = "builds", "dashboard"


class Kind(NamedTuple):
    """A kind of command: what it usually takes, and the table that it reads."""

    command: str
    arguments: str
    program: str
    seconds: float
    share: float
    table: str
    files: int = 0


KINDS = (
    Kind("user-fstat", "-Olhp //depot/main/...", P4V, 0.08, 0.3, "db.rev"),
    Kind("user-changes", "-m 100 //depot/main/...", P4V, 0.2, 0.2, "db.change"),
    Kind("user-opened", "", P4V, 0.05, 0.15, "db.working"),
    Kind("user-edit", "Source/Level.cpp", P4, 0.06, 0.12, "db.working"),
    Kind("user-sync", "//depot/main/...", P4, 9.0, 0.15, "db.have", 1800),
    Kind("user-filelog", "Source/Level.cpp", P4V, 0.15, 0.05, "db.integed"),
    Kind("dm-CommitSubmit", "", P4, 1.4, 0.03, "db.rev"),
)
# Minutes before now, and how long the submit held db.rev for writing.
JAM_AGO, JAM_SECONDS, JAM_VICTIMS = 95, 64, 14


def log_a_day(studio: Studio, *, places: Places, people: People) -> None:
    """Store a day of the log of the server at home, as if it had been read."""
    server = places.home.perforce_server
    assert server is not None
    log, _ = ServerLog.objects.get_or_create(
        server=server,
        defaults={
            "path": "/p4/1/logs/log",
            "is_followed": False,
            "build_users": BUILD_BOT,
            "read_at": studio.now,
        },
    )
    commands = [
        *_of_people(studio, people.developers),
        *_of_programs(studio, server),
        *_jam(studio, people.developers),
    ]
    commands.sort(key=lambda each: each.started)
    errors = [_error(each) for each in commands if each.has_failed]
    batch = Batch(log)
    batch.add([*commands, *errors])
    with transaction.atomic():
        batch.save(ReadCounts(commands=len(commands), errors=len(errors)))


def _of_people(studio: Studio, people: list[User]) -> list[LoggedCommand]:
    begin, chance = studio.now - DAY, studio.chance
    shares = [kind.share for kind in KINDS]
    found = []
    for at in studio.calendar.moments(
        COMMANDS_EACH * len(people), after=begin, before=studio.now
    ):
        user = chance.choice(people).perforce_name
        [kind] = chance.choices(KINDS, shares)
        files = int(kind.files * chance.lognormvariate(0, 1.2))
        took = studio.calendar.seconds(kind.seconds, spread=0.9).total_seconds()
        command = _command(studio, kind, user=user, at=at, seconds=took, files=files)
        command.has_failed = studio.happens(0.01)
        found.append(command)
    return found


def _of_programs(studio: Studio, server: PerforceServer) -> list[LoggedCommand]:
    """Return what a program polls, what builds sync, and flushes of ours."""
    polling = Kind("user-changes", "-m 1 //...", "jenkins", 0.3, 0, "db.change")
    building = Kind("user-sync", "//depot/...", P4, 75.0, 0, "db.have", 90_000)
    ours = Kind("user-sync", "-k //depot/main/...", PROGRAM, 6.0, 0, "db.have")
    found = []
    for user, kind, minutes in (
        (POLLER, polling, 1),
        (BUILD_BOT, building, 120),
        (server.p4user, ours, 45),
    ):
        for number in range(1, 24 * 60 // minutes):
            at = studio.calendar.ago(minutes=number * minutes)
            took = studio.calendar.seconds(kind.seconds).total_seconds()
            files = int(kind.files * studio.chance.uniform(0.6, 1.6))
            found.append(
                _command(studio, kind, user=user, at=at, seconds=took, files=files)
            )
    return found


def _jam(studio: Studio, people: list[User]) -> list[LoggedCommand]:
    """Return a submit that held db.rev for a minute, and who waited for it."""
    begin = studio.calendar.ago(minutes=JAM_AGO)
    submit = Kind("dm-CommitSubmit", "", P4, JAM_SECONDS, 0, "db.rev")
    holder = _command(
        studio, submit, user=BUILD_BOT, at=begin, seconds=JAM_SECONDS, files=0
    )
    holder.uses["db.rev"] = _use(write_held=1000 * (JAM_SECONDS - 2))
    found = [holder]
    for number in range(JAM_VICTIMS):
        kind = KINDS[number % 2]
        after = 2 + 3 * number
        waited = JAM_SECONDS - after - 1
        victim = _command(
            studio,
            kind,
            user=studio.chance.choice(people).perforce_name,
            at=begin + dt.timedelta(seconds=after),
            seconds=waited + studio.chance.uniform(0.1, 1.5),
            files=0,
        )
        victim.uses["db.rev"] = _use(read_wait=1000 * waited, read_held=30)
        found.append(victim)
    return found


def _command(
    studio: Studio,
    kind: Kind,
    *,
    user: str,
    at: dt.datetime,
    seconds: float,
    files: int,
) -> LoggedCommand:
    started, chance = int(at.timestamp()), studio.chance
    pid, held = chance.randint(2_000, 60_000), min(int(300 * seconds), 20_000)
    # Most commands wait for nobody.
    waited = held // 20 if pid % 8 == 0 else 0
    return LoggedCommand(
        offset=0,
        pid=pid,
        started=started,
        user=user,
        client=f"{user}-main",
        host=f"ws-{user}",
        program=kind.program,
        command=kind.command,
        arguments=kind.arguments,
        ended=started + int(seconds),
        lapse=seconds,
        is_completed=True,
        is_tracked=True,
        user_cpu_ms=int(300 * seconds),
        system_cpu_ms=int(60 * seconds),
        max_rss_kb=chance.randint(8_000, 90_000),
        files_sent=files,
        sent_mb=files * 3 // 10,
        rpc_out_mb=files * 3 // 10,
        uses={kind.table: _use(read_held=held, read_wait=waited, rows=40 * files)},
    )


def _use(
    *, read_wait: int = 0, read_held: int = 0, write_held: int = 0, rows: int = 0
) -> TableUse:
    return TableUse(
        rows_scanned=rows,
        read_wait_ms=read_wait,
        read_held_ms=read_held,
        write_held_ms=write_held,
        max_read_wait_ms=read_wait,
        max_read_held_ms=read_held,
        max_write_held_ms=write_held,
    )


def _error(command: LoggedCommand) -> LogMessage:
    assert command.ended is not None
    return LogMessage(
        offset=0,
        kind=MessageKind.ERROR,
        at=command.ended,
        pid=command.pid,
        operation=command.command,
        text=f"{command.arguments or command.client} - no such file(s).",
    )


def list_clients(studio: Studio, *, places: Places, people: People) -> None:
    """Add the clients of everybody: some loose, some large, some long unused."""
    server = places.home.perforce_server
    assert server is not None
    opened_files = 0
    for number, user in enumerate(people.developers):
        name = f"{user.username}-main"  # people may share an account of Perforce
        is_old = number % 11 == 5
        is_loose = number % 17 == 3
        age = studio.chance.uniform(100, 170) if is_old else studio.chance.random() * 3
        opened = studio.chance.randint(0, 12)
        opened_files += opened
        view = "//depot/..." if is_loose else "//depot/main/..."
        is_large = number % 29 == 7
        accessed_at = studio.calendar.ago(days=age)
        studio.rows.add(
            ListedClient(
                server=server,
                name=name,
                owner=user.perforce_name,
                host=f"ws-{user.perforce_name}",
                updated_at=studio.calendar.ago(days=171),
                accessed_at=accessed_at,
                opened_files=opened,
                locked_files=opened // 4,
                view_read_at=None if is_old else studio.calendar.ago(days=4),
                maps_whole_depot=is_loose and not is_old,
                whole_lines=(
                    [f"{view} //{name}/..."] if is_loose and not is_old else []
                ),
                synced_files=studio.chance.randint(120, 900) * 1000
                if is_large
                else None,
                synced_at=accessed_at if is_large else None,
            )
        )
    studio.rows.add(
        ClientListing(
            server=server,
            read_at=studio.calendar.ago(hours=7),
            opened_files=opened_files,
        )
    )
