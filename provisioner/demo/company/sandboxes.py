"""Half a year of sandboxes of the studio's server production, and what they left.

The server itself, and hosts that work, come with the demo. What is past was at a host
that has since been given back, so no file is missing at the one that is there.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from provisioner.accounts.models import User
from provisioner.accounts.system import system_user
from provisioner.demo import production, spare
from provisioner.demo.company.events import Log
from provisioner.demo.company.operations import WELL, Course, Engine
from provisioner.demo.company.people import People
from provisioner.demo.company.places import Places
from provisioner.demo.company.studio import Studio
from provisioner.engine.models import Subject
from provisioner.sandboxes.models import (
    P4dVersion,
    Role,
    Sandbox,
    SandboxHost,
    SandboxOperation,
    SandboxPlace,
    SandboxVolume,
    ServerVolume,
    ServerVolumes,
)
from provisioner.sandboxes.queries import AnyPlan
from provisioner.sandboxes.steps.defanging import GUARDS
from provisioner.sites.models import PerforceServer, Site

FORMER_HOST, FORMER_PORT = "sandbox-01", 17000
RUNS, NEXT = production.RELEASES
PURPOSE = Sandbox.Purpose
OPERATIONS: dict[str, SandboxOperation] = {
    PURPOSE.CHECKPOINT: SandboxOperation.CHECKPOINT,
    PURPOSE.VERIFY: SandboxOperation.VERIFY,
    PURPOSE.DRILL: SandboxOperation.DRILL,
    PURPOSE.BASELINE: SandboxOperation.BASELINE,
}


@dataclass(frozen=True)
class Case:
    """A sandbox that somebody had: for what, how many days ago, for how long."""

    name: str
    purpose: Sandbox.Purpose
    days_ago: float
    hours: int
    reason: str
    upgraded_from: str = ""


CASES = (
    Case("stuck-obliterate", PURPOSE.DIAGNOSE, 151, 8, "Support case 01184211"),
    Case("hung-resolve", PURPOSE.DIAGNOSE, 118, 4, "Resolve takes an hour"),
    Case("patch-2697822", PURPOSE.PATCH, 84, 24, "The fix for the hung resolve"),
    Case("rehearsal-1", PURPOSE.UPGRADE, 40, 48, "Upgrade of the long weekend", RUNS),
    Case("rehearsal-2", PURPOSE.UPGRADE, 19, 24, "With the indexes rebuilt", RUNS),
    Case("protections", PURPOSE.DIAGNOSE, 6, 8, "Who can read //art/unreleased"),
)


def ended(sandbox: Sandbox) -> dt.datetime:
    """Return when a sandbox was retired."""
    assert sandbox.retired_at is not None  # each of them is
    return sandbox.retired_at


class Copies:
    """Makes sandboxes that are retired, with what they left."""

    def __init__(
        self,
        studio: Studio,
        *,
        places: Places,
        people: People,
        engine: Engine,
        log: Log,
    ) -> None:
        self.studio, self.log, self.engine = studio, log, engine
        self._people = people
        self.admin, self._system = people.admin, system_user()
        rows = studio.rows
        self.server = rows.add(
            PerforceServer(
                name=production.NAME,
                p4port="127.0.0.1:1668",
                p4user="cloneyard",
                server_id=production.NAME,
            )
        )
        described = rows.add(ServerVolumes(server=self.server, site=places.home))
        self._places = [
            rows.add(ServerVolume(of=described, role=role, volume=volume, path=path))
            for role, volume, path in (
                (Role.DB, "prod_db", "root"),
                (Role.JOURNAL, "prod_journal", "journal"),
                (Role.DEPOT, "prod_depot", ""),
            )
        ]
        self._versions = [
            rows.add(
                P4dVersion(release=release, path=str(production.directory() / release))
            )
            for release in production.RELEASES
        ]
        self.former = self._host(FORMER_HOST, places.home, FORMER_PORT)
        self.host = self._host(production.HOST, places.home, production.FIRST_PORT)
        self.abroad = self._host(spare.HOST, places.abroad, spare.FIRST_PORT)

    def _host(self, name: str, site: Site, first_port: int) -> SandboxHost:
        uid, gid = production.identity()
        return self.studio.rows.add(
            SandboxHost(
                name=name, site=site, first_port=first_port, at_most=3, uid=uid, gid=gid
            )
        )

    def happen(self) -> None:
        """Add those that people had."""
        for case in CASES:
            self._had(case)

    def change_at(self, at: dt.datetime) -> int:
        """Return the change that the server stood at."""
        return int(48_000 + 61 * (at - self.studio.calendar.began).days)

    def due(self, time: dt.time) -> list[dt.datetime]:
        """Return that moment (UTC) of each day, oldest first, up to now."""
        days = range(self.studio.calendar.days - 1, -1, -1)
        today = self.studio.now.astimezone(dt.UTC).date()
        at = [
            dt.datetime.combine(today - dt.timedelta(ago), time, tzinfo=dt.UTC)
            for ago in days
        ]
        return [each for each in at if each < self.studio.now - dt.timedelta(hours=1)]

    def plan(
        self, model: type[AnyPlan], *, last: tuple[dt.datetime, str], **fields: Any
    ) -> AnyPlan:
        """Add a plan of the server; `last` is when it was due, and what came of it."""
        tried_for, status = last
        return self.studio.rows.add(
            model(
                server=self.server,
                version=self._versions[0],
                is_on=True,
                changed_at=self.studio.calendar.began,
                tried_for=tried_for,
                status=status,
                **fields,
            )
        )

    def planned(
        self, purpose: Sandbox.Purpose, *, at: dt.datetime, seconds: float, **given: Any
    ) -> Sandbox:
        """Add a sandbox that a plan made, named as plans do."""
        name = f"{purpose.value}-{self.server.pk}-{at:%Y%m%d-%H%M%S}"
        return self.sandbox(name, purpose=purpose, at=at, seconds=seconds, **given)

    def sandbox(
        self,
        name: str,
        *,
        purpose: Sandbox.Purpose,
        at: dt.datetime,
        seconds: float,
        by: User | None = None,
        host: SandboxHost | None = None,
        hours: int = 12,
        reason: str = "",
        is_ready: bool = True,
        failure: str = "",
        upgraded_from: str = "",
    ) -> Sandbox:
        """Add a sandbox that was there for so many seconds, and is retired."""
        studio, rows = self.studio, self.studio.rows
        by, host = by or self._system, host or self.former
        release = NEXT if upgraded_from else RUNS
        upgrade = studio.chance.uniform(310, 420) if upgraded_from else None
        is_elsewhere = host == self.abroad
        kind = Sandbox.Consistency
        sandbox = rows.add(
            Sandbox(
                subject=rows.add(Subject(kind="sandbox")),
                name=name,
                perforce_server=self.server,
                site=host.site,
                host=host,
                owner=by,
                purpose=purpose,
                release=release,
                p4d_path=str(production.directory() / release),
                server_id=f"sandbox-{name}"[:64],
                port=host.first_port,
                tag=studio.uuid(),
                state=Sandbox.State.RETIRED,
                consistency=kind.REPLICATED if is_elsewhere else kind.GROUP,
                taken_at=at + dt.timedelta(seconds=4),
                ready_at=at + studio.calendar.seconds(14, spread=0.2)
                if is_ready
                else None,
                expires_at=at + dt.timedelta(hours=hours),
                retired_at=min(at + dt.timedelta(seconds=seconds), studio.now),
                upgraded_from=upgraded_from,
                upgrade_seconds=upgrade,
                created_at=at,
            )
        )
        if is_ready:
            sandbox.defanged = list(_defanged(sandbox))
        self._clone(sandbox, is_elsewhere=is_elsewhere)
        self._run(sandbox, failure=failure)
        self._tell(sandbox, hours=hours, reason=reason, failure=failure)
        return sandbox

    def _clone(self, sandbox: Sandbox, *, is_elsewhere: bool) -> None:
        rows, uuid = self.studio.rows, self.studio.uuid
        for number, place in enumerate(self._places, start=1):
            source = spare.REPLICAS[place.volume] if is_elsewhere else place.volume
            volume = rows.add(
                SandboxVolume(
                    sandbox=sandbox,
                    number=number,
                    source=source,
                    is_replica=is_elsewhere,
                    snapshot_uuid=str(uuid()),
                    clone_uuid=str(uuid()),
                )
            )
            rows.add(SandboxPlace(volume=volume, role=place.role, path=place.path))

    def _run(self, sandbox: Sandbox, *, failure: str) -> None:
        kind = OPERATIONS.get(sandbox.purpose, SandboxOperation.CREATE)
        course = WELL
        if failure:
            course = Course(fails_at="place", code="sandbox_failed", message=failure)
        at = sandbox.created_at
        self.engine.run(kind, sandbox, by=sandbox.owner, at=at, course=course)
        retired = ended(sandbox) - dt.timedelta(seconds=3)
        self.engine.run(SandboxOperation.RETIRE, sandbox, by=self._system, at=retired)

    def _tell(self, sandbox: Sandbox, *, hours: int, reason: str, failure: str) -> None:
        at, by = sandbox.created_at, sandbox.owner
        message = (
            f"Requested a sandbox of {self.server.name} with p4d {sandbox.release} at "
            f"{sandbox.p4port}, {sandbox.get_purpose_display().lower()}, for {hours} "
            "hours."
        )
        self.log.tell(
            sandbox, "sandbox_requested", message, at=at, by=by, reason=reason
        )
        if failure:
            self.log.tell(sandbox, "sandbox_failed", failure, at=at)
        elif sandbox.ready_at is not None:
            message = f"Ready at {sandbox.p4port}."
            self.log.tell(sandbox, "sandbox_ready", message, at=sandbox.ready_at)
        message = "Retired. Nothing of it is left."
        self.log.tell(sandbox, "sandbox_retired", message, at=ended(sandbox))

    def _had(self, case: Case) -> None:
        """Add a sandbox that a person had until the end of its lease."""
        after = self.studio.calendar.ago(days=case.days_ago)
        at = self.studio.calendar.moment(after=after, before=after + dt.timedelta(1))
        self.sandbox(
            case.name,
            purpose=case.purpose,
            by=self._people.bob if case.days_ago < 10 else self.admin,
            at=at,
            hours=case.hours,
            seconds=case.hours * 3600 * self.studio.chance.uniform(0.6, 1.0),
            reason=case.reason,
            upgraded_from=case.upgraded_from,
        )


def _defanged(sandbox: Sandbox) -> list[str]:
    """Return what was switched off in a copy of this server, as its step says it."""
    return [
        *(f"Unset {name}, which was {value}." for name, value in production.FANGS),
        "Removed the trigger, and with that mail and external logins.",
        *(f"Set {name}={value}: {said}" for name, value, said in GUARDS),
        f"The ServerID is {sandbox.server_id}; the original's is {production.NAME}. "
        "No specification says more of it, so it is a standard server.",
    ]
