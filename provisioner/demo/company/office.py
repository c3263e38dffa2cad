"""Everyday events: sign-ins, and administrators' changes."""

from __future__ import annotations

import datetime as dt

from provisioner.accounts.models import User
from provisioner.demo.company.events import Log
from provisioner.demo.company.people import People
from provisioner.demo.company.places import WHY_PAUSED, Places
from provisioner.demo.company.studio import Studio
from provisioner.demo.company.templates import Built
from provisioner.engine.models import LockWait, Operation
from provisioner.leases.models import LeasePolicy

DAY = 24 * 3600
VISITS_SEEN = dt.timedelta(days=21)
WAITS = 40
TABLES = ("db.have", "db.working", "db.rev", "db.domain")


class Office:
    """Makes sign-ins, policies and lock waits."""

    def __init__(self, studio: Studio, *, people: People, log: Log) -> None:
        self._studio, self._people, self._log = studio, people, log

    def go_on(self, places: Places, templates: list[Built]) -> None:
        """Add audit log events beyond those of templates and workspaces."""
        for user in (*self._people.developers, *self._people.administrators):
            self._visits(user)
        for built in templates[::5]:
            self._policy(built)
        self._log.tell(
            places.abroad.perforce_server,
            "perforce_server_paused",
            "Paused what uses it.",
            at=self._studio.calendar.ago(hours=5),
            by=self._people.admin,
            reason=WHY_PAUSED,
        )
        self._wait(places)

    def _visits(self, user: User) -> None:
        calendar, chance = self._studio.calendar, self._studio.chance
        times = calendar.moments(
            chance.randrange(1, 6),
            after=calendar.now - VISITS_SEEN,
            before=calendar.now,
        )
        for at in times:
            self._log.tell(user, "signed_in", "Signed in.", at=at, by=user)
        if self._studio.happens(0.05):
            at = times[-1] - dt.timedelta(seconds=40)
            self._log.tell(user, "sign_in_failed", "Signing in failed.", at=at)

    def _policy(self, built: Built) -> None:
        at = self._studio.calendar.ago(days=self._studio.chance.uniform(60, 170))
        policy = self._studio.rows.add(
            LeasePolicy(
                template=built.template,
                purpose="development",
                default_seconds=30 * DAY,
                maximum_seconds=180 * DAY,
                trash_seconds=3 * DAY,
                warn_seconds=[7 * DAY, DAY],
            )
        )
        self._log.tell(
            policy,
            "policy_made",
            f"Development of {built.template.name}. How long workspaces live: 0 "
            "deadlines moved.",
            at=at,
            by=self._people.admin,
        )

    def _wait(self, places: Places) -> None:
        """Add the latest lock waits of the home site's server."""
        chance = self._studio.chance
        newest = [
            operation
            for operation in self._studio.rows.of(Operation)
            if operation.site == places.home and operation.ended_at is not None
        ][-400:]
        for operation in chance.sample(newest, k=min(WAITS, len(newest))):
            assert operation.ended_at is not None
            waited = int(chance.lognormvariate(4.6, 1.1))
            self._studio.rows.add(
                LockWait(
                    server=places.home.perforce_server,
                    at=operation.ended_at,
                    operation=operation,
                    command=chance.choice(("sync -k", "sync", "client -d")),
                    table=chance.choice(TABLES),
                    waited_ms=waited,
                    held_ms=waited // 3,
                )
            )
