"""Which programs people use at Perforce servers, in which release."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Max, Min

from provisioner.gateways.perforce.connection import PROGRAM, is_ours
from provisioner.insight.models import (
    OF_THE_SERVER,
    Process,
    ProgramLogReading,
    ProgramUse,
)
from provisioner.lib.releases import numbers_of
from provisioner.server_log.models import LogCommand, ServerLog
from provisioner.sites.models import PerforceServer

RELEASE = r"\A(?:19|20)[0-9]{2}\.[0-9]{1,2}\Z"
# People may choose names; an index entry of program and user has 2,704 bytes at most.
LONGEST_NAME = 300
# Of a log at a time, and how many times in an hour: five million in all.
LOG_COMMANDS_AT_ONCE = 250_000
LOG_TIMES_AT_MOST = 20
# As servers and clients write it: p4/2024.1/LINUX26X86_64/2611120, and in brackets
# [PY3.11.14/P4PY2026.1/API2026.1/2972966], and P4Java with the change that it was
# built of: Unknown P4Java program/2025.1.2785811.
_NUMBER = r"(?P<release>(?:19|20)[0-9]{2}\.[0-9]{1,2})(?:(?![0-9.])|(?=\.[0-9]{5}))"
_IN_NAME = re.compile(rf"[/ ]v?{_NUMBER}")
_IN_LIBRARY = re.compile(rf"(?:API|P4[A-Z]+){_NUMBER}")


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A configurable that would stop what is old, and what it would do."""

    command: str
    effect: str


def program_of(text: str) -> tuple[str, str]:
    """Return the name of a program and its release, "" if it does not say.

    Of a script with a library the release is the library's. A long name is cut.
    """
    found = _IN_NAME.search(text) or _IN_LIBRARY.search(text)
    name = re.split(r"/| \[", text, maxsplit=1)[0].strip()
    name = (name or text.strip())[:LONGEST_NAME]
    return name, found["release"] if found else ""


def record_programs(
    server: PerforceServer, processes: Iterable[Process], *, now: dt.datetime
) -> None:
    """Note which programs were seen. Not those of the server itself, nor ours."""
    uses = dict[tuple[str, str, str], ProgramUse]()
    for process in processes:
        if not process.program or process.is_of_the_server:
            continue
        if is_ours(process.user, process.program, our_user=server.p4user):
            continue
        program, release = program_of(process.program)
        user = process.user[:LONGEST_NAME]
        uses[program, release, user] = ProgramUse(
            server=server,
            program=program,
            release=release,
            user=user,
            host=process.host,
            first_seen_at=now,
            last_seen_at=now,
        )
    ProgramUse.objects.bulk_create(
        uses.values(),
        update_conflicts=True,
        unique_fields=["server", "program", "release", "user"],
        update_fields=["host", "last_seen_at"],
    )


def record_programs_of_log(log: ServerLog) -> bool:
    """Note the programs of a log's next commands; return whether there may be more.

    It begins at the newest ones. Commands of the server itself and ours do not count.
    While the log is being read there are none: they come later.
    """
    newest = _newest_stored(log)
    if newest is None:
        return False
    reading, _ = ProgramLogReading.objects.get_or_create(
        log=log, defaults={"command_id": max(0, newest - LOG_COMMANDS_AT_ONCE)}
    )
    until = min(newest, reading.command_id + LOG_COMMANDS_AT_ONCE)
    rows = (
        LogCommand.objects.filter(log=log, pk__gt=reading.command_id, pk__lte=until)
        .exclude(command__in=OF_THE_SERVER)
        .exclude(program="")
        .exclude(user=log.server.p4user, program__startswith=PROGRAM)
        .order_by()
        .values_list("program", "user")
        .annotate(Max("host"), Min("started_at"), Max("started_at"))
    )
    uses = dict[tuple[str, str, str], ProgramUse]()
    for text, user, host, first, last in rows:
        program, release = program_of(text)
        key = (program, release, user[:LONGEST_NAME])
        known = uses.get(key)
        if known is not None and known.last_seen_at > last:
            known.first_seen_at = min(known.first_seen_at, first)
            continue
        uses[key] = ProgramUse(
            server=log.server,
            program=program,
            release=release,
            user=key[2],
            host=host,
            first_seen_at=first if known is None else min(known.first_seen_at, first),
            last_seen_at=last,
        )
    with transaction.atomic():
        of_server = ProgramUse.objects.filter(server=log.server)
        seen = of_server.values_list("program", "release", "user", "last_seen_at")
        for program, release, user, last in seen if uses else ():
            use = uses.get((program, release, user))
            if use is not None and use.last_seen_at <= last:
                del uses[program, release, user]
        ProgramUse.objects.bulk_create(
            uses.values(),
            update_conflicts=True,
            unique_fields=["server", "program", "release", "user"],
            update_fields=["host", "last_seen_at"],
        )
        ProgramLogReading.objects.filter(pk=reading.pk).update(command_id=until)
    return until < newest


def _newest_stored(log: ServerLog) -> int | None:
    """Return a number up to which all commands of a log are seen that will ever be.

    Who stores commands of a log holds its row, numbers them meanwhile, and is seen when
    it is let go. So whoever has the row sees all that were numbered. None if somebody
    has it, or there is no command.
    """
    with transaction.atomic():
        free = ServerLog.objects.select_for_update(skip_locked=True)
        if free.filter(pk=log.pk).first() is None:
            return None
        return LogCommand.objects.order_by("-pk").values_list("pk", flat=True).first()


def proposals(
    older_than: str, *, server: PerforceServer | None = None
) -> list[Proposal]:
    """Return what would stop programs older than a release, to be set by hand.

    Of those seen at a server, if one is given.

    Source: p4 help configurables, minClient and rejectList; rejectList has no
    wildcards, so each program and release is named.
    """
    if not older_than:
        return []
    old = (
        ProgramUse.objects.filter(release__numbers__lt=numbers_of(older_than))
        .exclude(release="")
        .filter(**({"server": server} if server is not None else {}))
        .order_by("program", "release__numbers")
        .values_list("program", "release")
        .distinct()
    )
    # A name with a comma or quotes could not be told from the list's own.
    named = [(p, r) for p, r in old if re.fullmatch(r"[\w .+-]+", p, re.ASCII)]
    listed = ",".join(f"{program},version={release}" for program, release in named)
    found = [
        Proposal(
            command=f"p4 configure set minClient={older_than}",
            effect="Refuses every older client, with minClientMessage as the reason.",
        )
    ]
    if listed:
        found.append(
            Proposal(
                command=f"p4 configure set 'rejectList={listed}'",
                effect="Refuses only these. It replaces the present list, and what it "
                "refuses is not logged.",
            )
        )
    return found
