"""Which programs people use at Perforce servers, in which release."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass

from provisioner.gateways.perforce.connection import PROGRAM
from provisioner.gateways.perforce.types import ServerProcess
from provisioner.insight.models import Process, ProgramUse
from provisioner.sites.models import PerforceServer

RELEASE = r"\A(?:19|20)[0-9]{2}\.[0-9]{1,2}\Z"
# People may choose names; an index entry of program and user has 2,704 bytes at most.
LONGEST_NAME = 300
# As servers and clients write it: p4/2024.1/LINUX26X86_64/2611120, and in brackets
# [PY3.11.14/P4PY2026.1/API2026.1/2972966].
_NUMBER = r"(?P<release>(?:19|20)[0-9]{2}\.[0-9]{1,2})(?![0-9.])"
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


def is_ours(process: ServerProcess | Process, *, our_user: str) -> bool:
    """Return whether a process is of Cloneyard, by its account and its program."""
    return process.user == our_user and process.program.startswith(PROGRAM)


def record_programs(
    server: PerforceServer, processes: Iterable[Process], *, now: dt.datetime
) -> None:
    """Note which programs were seen. Not those of the server itself, nor ours."""
    uses = dict[tuple[str, str, str], ProgramUse]()
    for process in processes:
        if not process.program or process.is_of_the_server:
            continue
        if is_ours(process, our_user=server.p4user):
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
        ProgramUse.objects.filter(release__lt=older_than)
        .exclude(release="")
        .filter(**({"server": server} if server is not None else {}))
        .order_by("program", "release")
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
                effect="Refuses these alone. It replaces the present list, and what it "
                "refuses is not logged.",
            )
        )
    return found
