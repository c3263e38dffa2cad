"""Rules that send builds and CI to a replica, and the load that they move."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.demo.company.people import People
from provisioner.demo.company.places import Places
from provisioner.demo.company.studio import Studio
from provisioner.routing.kinds import Purpose
from provisioner.routing.models import RoutingRule, TrafficDay
from provisioner.sites.models import PerforceServer

GIB = 2**30
DAYS_SEEN = 60
RULES_SINCE_DAYS = 40


@dataclass(frozen=True, kw_only=True)
class _Usual:
    """What a purpose asks for on a working day; `moves` with the rules."""

    purpose: Purpose
    account: User
    commands: int
    synced_files: int = 0
    synced_bytes: int = 0
    flushed_files: int = 0
    moves: bool = False


def route(studio: Studio, *, places: Places, people: People) -> None:
    """Add the rules, and two months of traffic."""
    rules = (Purpose.TEMPLATE, Purpose.CI)
    for position, purpose in enumerate(rules, start=1):
        studio.rows.add(
            RoutingRule(position=position, purpose=purpose, server=places.builds)
        )
    home = places.home.perforce_server
    for ago in range(DAYS_SEEN):
        day = studio.calendar.ago(days=ago).astimezone(dt.UTC).date()
        has_rules = ago < RULES_SINCE_DAYS
        for usual in _usual(people):
            there = places.builds if usual.moves and has_rules else home
            studio.rows.add(_day(day, usual, server=there))


def _usual(people: People) -> Iterator[_Usual]:
    machine = people.machines[0]
    yield _Usual(
        purpose=Purpose.TEMPLATE,
        account=people.bob,
        commands=900,
        synced_files=140_000,
        synced_bytes=310 * GIB,
        moves=True,
    )
    yield _Usual(
        purpose=Purpose.CI,
        account=machine,
        commands=5_200,
        flushed_files=96_000_000,
        moves=True,
    )
    yield _Usual(
        purpose=Purpose.DEVELOPMENT,
        account=people.alice,
        commands=1_400,
        flushed_files=7_000_000,
    )
    yield _Usual(
        purpose=Purpose.BISECTION,
        account=people.alice,
        commands=120,
        synced_files=2_600,
        synced_bytes=4 * GIB,
    )


def _day(day: dt.date, usual: _Usual, *, server: PerforceServer) -> TrafficDay:
    """Return a day's sums: less at weekends, and never twice the same."""
    percent = (20 if day.weekday() >= 5 else 85) + day.toordinal() * 7 % 30
    return TrafficDay(
        day=day,
        server=server,
        purpose=usual.purpose,
        account=usual.account,
        commands=usual.commands * percent // 100,
        synced_files=usual.synced_files * percent // 100,
        synced_bytes=usual.synced_bytes * percent // 100,
        flushed_files=usual.flushed_files * percent // 100,
    )
