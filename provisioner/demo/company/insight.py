"""What administrators see of the studio's Perforce server: programs and probes."""

from __future__ import annotations

import datetime as dt

from provisioner.accounts.models import User
from provisioner.demo.company.calendar import OF_A_WEEKDAY, OF_AN_HOUR, ZONE
from provisioner.demo.company.people import People
from provisioner.demo.company.places import Places
from provisioner.demo.company.studio import Studio
from provisioner.insight.models import OrphanRule, ProgramRelease, ProgramUse
from provisioner.probes.commands import USUAL
from provisioner.probes.models import (
    Moment,
    ProbePlan,
    ProbeRun,
    ProbeTime,
    ProcessCount,
)
from provisioner.sites.models import PerforceServer

# With the shares of people who have them.
PROGRAMS = (
    ("p4", (("2019.1", 0.05), ("2021.2", 0.12), ("2024.1", 0.4), ("2025.1", 0.2))),
    ("P4V", (("2020.3", 0.04), ("2023.4", 0.15), ("2025.2", 0.5))),
    ("Unreal Editor", (("2022.1", 0.2),)),
)
RELEASES = (("p4", "2020.1", "2024.1"), ("P4V", "2022.1", "2024.1"))
# At night, of each of the usual commands; by day they take up to half as much again.
SECONDS = (0.012, 0.035, 0.21, 0.048, 0.09)
SLOWER_BEFORE = 1.8
MOVED_DAYS_AGO = 55
MAINTENANCE = "The server is in maintenance."
ROUND, COUNT = dt.timedelta(minutes=15), dt.timedelta(minutes=5)
RESTING, AT_WORK = 6, 60


def watch(studio: Studio, *, places: Places, people: People) -> None:
    """Add half a year of what Cloneyard read of the server at home."""
    server = places.home.perforce_server
    # In a large company some share their name at the server.
    for user in {each.perforce_name: each for each in people.developers}.values():
        _uses(studio, server, user)
    for program, minimum, recommended in RELEASES:
        studio.rows.add(
            ProgramRelease(
                server=server,
                program=program,
                minimum=minimum,
                recommended=recommended,
            )
        )
    studio.rows.add(OrphanRule(server=server, idle_hours=48, only_gone_hosts=True))
    studio.rows.add(ProbePlan(server=server))
    moved_at = studio.calendar.ago(days=MOVED_DAYS_AGO)
    _probe(studio, server, moved_at=moved_at)
    studio.rows.add(
        Moment(
            server=server,
            label="Tables moved to NVMe",
            at=moved_at,
            note="P4ROOT was on the shared array before.",
            created_by=people.admin,
            created_at=moved_at,
        )
    )


def _uses(studio: Studio, server: PerforceServer, user: User) -> None:
    for program, releases in PROGRAMS:
        for release, share in releases:
            if not studio.happens(share):
                continue
            began = studio.calendar.ago(days=studio.chance.uniform(30, 170))
            studio.rows.add(
                ProgramUse(
                    server=server,
                    program=program,
                    release=release,
                    user=user.perforce_name,
                    host=f"ws-{user.username}",
                    first_seen_at=began,
                    last_seen_at=studio.calendar.moment(after=began, before=studio.now),
                )
            )


def _probe(studio: Studio, server: PerforceServer, *, moved_at: dt.datetime) -> None:
    """Add every round, with gaps while checkpoints are taken, and every count."""
    days = dt.timedelta(days=studio.size.probe_days)
    at, change = studio.now - days, 100_000
    while at < studio.now:
        local = at.astimezone(ZONE)
        load = OF_A_WEEKDAY[local.weekday()] * OF_AN_HOUR[local.hour] / 1.5
        change += studio.chance.randint(0, 2 + int(8 * load))
        if local.weekday() == 6 and local.hour == 3:
            studio.rows.add(ProbeRun(server=server, at=at, gap=MAINTENANCE))
        else:
            slower = SLOWER_BEFORE if at < moved_at else 1.0
            _round(studio, server, at=at, change=change, by=slower * (1 + load / 2))
        for number in range(3):
            running = (RESTING + AT_WORK * load) * studio.chance.uniform(0.6, 1.4)
            studio.rows.add(
                ProcessCount(
                    server=server, at=at + number * COUNT, processes=int(running)
                )
            )
        at += ROUND


def _round(
    studio: Studio, server: PerforceServer, *, at: dt.datetime, change: int, by: float
) -> None:
    took = [each * by * studio.chance.lognormvariate(0, 0.25) for each in SECONDS]
    run = studio.rows.add(
        ProbeRun(
            server=server,
            at=at,
            host="ws-probe",
            lapse_seconds=sum(took),
            change=change,
        )
    )
    for command, seconds in zip(USUAL, took, strict=True):
        studio.rows.add(ProbeTime(run=run, command=command, seconds=seconds))
