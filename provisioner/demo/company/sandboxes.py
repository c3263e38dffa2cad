"""Half a year of the studio's server production: copies, checkpoints, drills.

The server itself, and hosts that work, come with the demo. What is past was at a host
that has since been given back, so no file is missing at the one that is there.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.accounts.system import system_user
from provisioner.demo import production, spare
from provisioner.demo.company.events import Log
from provisioner.demo.company.operations import WELL, Course, Engine
from provisioner.demo.company.people import People
from provisioner.demo.company.places import Places
from provisioner.demo.company.studio import Studio
from provisioner.drills.models import Drill
from provisioner.engine.models import Subject
from provisioner.recipes import retention
from provisioner.recipes.models import (
    Checkpoint,
    CheckpointPlan,
    DamagedFile,
    Verification,
    VerifiedDepot,
)
from provisioner.sandboxes.models import (
    P4dVersion,
    Sandbox,
    SandboxHost,
    SandboxOperation,
)
from provisioner.sites.models import PerforceServer, Site

FORMER_HOST = "sandbox-01"
PURPOSE = Sandbox.Purpose
GIB = 2**30
KEPT_LONG_ENOUGH = "Kept long enough."
DRILLED_AT = 4
NIGHTLY = dt.time(2, 30)
WEEKLY = dt.time(3, 0)
SATURDAY = 5
# Depots with their kind, the seconds that one takes, and why one is left out.
DEPOTS = (
    ("game", "stream", 5230.0, ""),
    ("art", "stream", 21_400.0, ""),
    ("tools", "local", 260.0, ""),
    ("archive", "archive", None, "An archive depot: its files may be offline."),
)
# Which of the weeks back had what: a controller that failed, and was replaced.
DAMAGED_WEEKS_AGO = 9
DAMAGED = (
    ("//art/aurora/characters/hero_diffuse.tga", 4, "bad"),
    ("//art/aurora/characters/hero_normal.tga", 2, "bad"),
    ("//art/aurora/levels/harbour.umap", 11, "missing"),
)
FAILED_NIGHTS_AGO = 23
NO_ROOM = (
    "The directory has 3.1 GiB free, and the checkpoint needs 9.4 GiB. Make room, or "
    "give the plan another directory."
)
NO_COMMON = (
    "The volumes have no snapshot of one name at montreal. Replicate a consistency "
    "group, or one snapshot policy."
)
OLD_COPY = (
    "The copy was 2 days old, and may be 24 hours. Look whether SnapMirror still "
    "transfers."
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A sandbox that somebody had: for what, how many days ago, for how long."""

    name: str
    purpose: Sandbox.Purpose
    release: str
    days_ago: float
    hours: int
    reason: str
    upgraded_from: str = ""


CASES = (
    Case(
        name="stuck-obliterate",
        purpose=PURPOSE.DIAGNOSE,
        release="2024.2",
        days_ago=151,
        hours=8,
        reason="Support case 01184211",
    ),
    Case(
        name="hung-resolve",
        purpose=PURPOSE.DIAGNOSE,
        release="2024.2",
        days_ago=118,
        hours=4,
        reason="Resolve of a branch takes an hour",
    ),
    Case(
        name="patch-2697822",
        purpose=PURPOSE.PATCH,
        release="2024.2",
        days_ago=84,
        hours=24,
        reason="The fix for the hung resolve",
    ),
    Case(
        name="rehearsal-1",
        purpose=PURPOSE.UPGRADE,
        release="2025.1",
        days_ago=40,
        hours=48,
        reason="Upgrade planned for the long weekend",
        upgraded_from="2024.2",
    ),
    Case(
        name="rehearsal-2",
        purpose=PURPOSE.UPGRADE,
        release="2025.1",
        days_ago=19,
        hours=24,
        reason="With the indexes rebuilt",
        upgraded_from="2024.2",
    ),
    Case(
        name="protections",
        purpose=PURPOSE.DIAGNOSE,
        release="2024.2",
        days_ago=6,
        hours=8,
        reason="Who can read //art/unreleased",
    ),
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
        self.studio, self.log = studio, log
        self.places, self._people, self._engine = places, people, engine
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
        for release in production.RELEASES:
            path = str(production.directory() / release)
            rows.add(P4dVersion(release=release, path=path))
        self.former = self._host(FORMER_HOST, places.home)
        self.abroad = self._host(spare.HOST, places.abroad)

    def _host(self, name: str, site: Site) -> SandboxHost:
        uid, gid = production.identity()
        port = spare.FIRST_PORT if name == spare.HOST else 17000
        return self.studio.rows.add(
            SandboxHost(
                name=name, site=site, first_port=port, at_most=3, uid=uid, gid=gid
            )
        )

    def happen(self) -> None:
        """Add all of it."""
        for case in CASES:
            self._had(case)
        self._checkpoints()
        self._verifications()
        self._drills()

    def change_at(self, at: dt.datetime) -> int:
        """Return the change that the server stood at."""
        return int(48_000 + 61 * (at - self.studio.calendar.began).days)

    def sandbox(
        self,
        name: str,
        *,
        purpose: Sandbox.Purpose,
        at: dt.datetime,
        seconds: float,
        by: User | None = None,
        release: str = production.RELEASES[0],
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
        retired_at = min(at + dt.timedelta(seconds=seconds), studio.now)
        took = studio.calendar.seconds(14, spread=0.2)
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
                server_id=f"sandbox-{studio.chance.getrandbits(32):08x}",
                port=host.first_port,
                tag=studio.uuid(),
                state=Sandbox.State.RETIRED,
                consistency=Sandbox.Consistency.REPLICATED
                if host == self.abroad
                else Sandbox.Consistency.GROUP,
                taken_at=at + dt.timedelta(seconds=4),
                ready_at=at + took if is_ready else None,
                expires_at=at + dt.timedelta(hours=hours),
                retired_at=retired_at,
                upgraded_from=upgraded_from,
                upgrade_seconds=studio.chance.uniform(310, 420)
                if upgraded_from
                else None,
                created_at=at,
            )
        )
        course = (
            Course(fails_at="place", code="sandbox_failed", message=failure)
            if failure
            else WELL
        )
        kinds = {
            PURPOSE.CHECKPOINT: SandboxOperation.CHECKPOINT,
            PURPOSE.VERIFY: SandboxOperation.VERIFY,
            PURPOSE.DRILL: SandboxOperation.DRILL,
            PURPOSE.BASELINE: SandboxOperation.BASELINE,
        }
        kind = kinds.get(purpose, SandboxOperation.CREATE)
        self._engine.run(kind, sandbox, by=by, at=at, course=course)
        self._engine.run(
            SandboxOperation.RETIRE,
            sandbox,
            by=self._system,
            at=retired_at - dt.timedelta(seconds=3),
        )
        self._tell(sandbox, hours=hours, reason=reason, failure=failure)
        return sandbox

    def _tell(self, sandbox: Sandbox, *, hours: int, reason: str, failure: str) -> None:
        message = (
            f"Requested a sandbox of {self.server.name} with p4d {sandbox.release} at "
            f"{sandbox.p4port}, {sandbox.get_purpose_display().lower()}, for {hours} "
            "hours."
        )
        self.log.tell(
            sandbox,
            "sandbox_requested",
            message,
            at=sandbox.created_at,
            by=sandbox.owner,
            reason=reason,
        )
        if failure:
            self.log.tell(sandbox, "sandbox_failed", failure, at=sandbox.created_at)
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
            release=case.release,
            at=at,
            hours=case.hours,
            seconds=case.hours * 3600 * self.studio.chance.uniform(0.6, 1.0),
            reason=case.reason,
            upgraded_from=case.upgraded_from,
        )

    def _nights(self, time: dt.time) -> list[dt.datetime]:
        """Return that moment (UTC) of each day, oldest first, up to now."""
        days = range(self.studio.calendar.days - 1, -1, -1)
        today = self.studio.now.astimezone(dt.UTC).date()
        at = [
            dt.datetime.combine(today - dt.timedelta(ago), time, tzinfo=dt.UTC)
            for ago in days
        ]
        return [each for each in at if each < self.studio.now - dt.timedelta(hours=1)]

    def _checkpoints(self) -> None:
        """Add one each night, and remove those that no rule keeps."""
        made: list[Checkpoint] = []
        nights = self._nights(NIGHTLY)
        for night, at in enumerate(nights):
            if len(nights) - night == FAILED_NIGHTS_AGO:
                self._fail(at)
                continue
            made.append(self._checkpoint(at))
            self._prune(made, at=made[-1].made_at)

    def _fail(self, at: dt.datetime) -> None:
        name = f"checkpoint-{self.server.pk}-{at:%Y%m%d-%H%M%S}"
        self.sandbox(
            name,
            purpose=PURPOSE.CHECKPOINT,
            at=at,
            seconds=12 * 3600,
            is_ready=False,
            failure=NO_ROOM,
        )
        message = f"The checkpoint by {name} failed. {NO_ROOM}"
        self.log.tell(self.server, "checkpoint_failed", message, at=at)

    def _checkpoint(self, at: dt.datetime) -> Checkpoint:
        studio = self.studio
        change = self.change_at(at)
        dump = studio.chance.uniform(170, 230) * change / 59_000
        replay = dump * studio.chance.uniform(1.2, 1.5)
        plain = int(9.4 * GIB * change / 59_000)
        sandbox = self.sandbox(
            f"checkpoint-{self.server.pk}-{at:%Y%m%d-%H%M%S}",
            purpose=PURPOSE.CHECKPOINT,
            at=at,
            seconds=dump + replay + 60,
            is_ready=False,
        )
        made_at = ended(sandbox) - dt.timedelta(seconds=8)
        name = f"production.{at:%Y%m%d-%H%M%S}.{sandbox.tag.hex[:6]}.ckp.gz"
        made = studio.rows.add(
            Checkpoint(
                sandbox=sandbox,
                path=f"/checkpoints/{name}",
                change=change,
                journal=400 + (at - studio.calendar.began).days,
                size_bytes=int(plain / studio.chance.uniform(5.8, 6.2)),
                plain_bytes=plain,
                sha256=studio.digest(),
                md5=studio.digest()[:32].upper(),
                dump_seconds=dump,
                replay_seconds=replay,
                tables={
                    "db.change": change,
                    "db.have": 220 * 91_000,
                    "db.rev": change * 31,
                    "db.user": 240,
                },
                is_proven=True,
                made_at=made_at,
            )
        )
        message = (
            f"Made a checkpoint, and proved it by a replay elsewhere. It stands at "
            f"change {change}. It is kept on {FORMER_HOST} as {made.path}."
        )
        self.log.tell(self.server, "checkpoint_made", message, at=made_at)
        return made

    def _prune(self, made: list[Checkpoint], *, at: dt.datetime) -> None:
        plan = CheckpointPlan()
        there = [each for each in made if each.removed_at is None]
        kept = [
            retention.Kept(
                number=number, taken_at=each.sandbox.created_at, is_proven=True
            )
            for number, each in enumerate(there)
        ]
        gone = retention.to_remove(
            kept, keep_daily=plan.keep_daily, keep_weekly=plan.keep_weekly
        )
        for number in gone:
            there[number].removed_at = at
            there[number].removed_because = KEPT_LONG_ENOUGH

    def _verifications(self) -> None:
        """Add one each Saturday; one found damage, and the next that it was mended."""
        saturdays = [at for at in self._nights(WEEKLY) if at.weekday() == SATURDAY]
        for week, at in enumerate(saturdays):
            found = DAMAGED if len(saturdays) - week == DAMAGED_WEEKS_AGO else ()
            self._verify(at, found=found)

    def _verify(
        self, at: dt.datetime, *, found: tuple[tuple[str, int, str], ...]
    ) -> None:
        rows, calendar = self.studio.rows, self.studio.calendar
        taken = {
            name: calendar.seconds(usual, spread=0.06).total_seconds()
            for name, _, usual, _ in DEPOTS
            if usual is not None
        }
        total = sum(taken.values())
        sandbox = self.sandbox(
            f"verify-{self.server.pk}-{at:%Y%m%d-%H%M%S}",
            purpose=PURPOSE.VERIFY,
            at=at,
            seconds=total + 40,
        )
        ended_at = ended(sandbox) - dt.timedelta(seconds=4)
        verification = rows.add(
            Verification(
                sandbox=sandbox,
                began_at=at + dt.timedelta(seconds=16),
                ended_at=ended_at,
            )
        )
        for name, kind, _, left_out in DEPOTS:
            damaged = [each for each in found if each[0].startswith(f"//{name}/")]
            lost = sum(status == "missing" for *_, status in damaged)
            depot = rows.add(
                VerifiedDepot(
                    verification=verification,
                    name=name,
                    kind=kind,
                    seconds=taken.get(name),
                    bad=len(damaged) - lost,
                    missing=lost,
                    left_out=left_out,
                )
            )
            for path, revision, status in damaged:
                rows.add(
                    DamagedFile(
                        depot=depot,
                        path=path,
                        revision=revision,
                        change=self.change_at(at) - 4_000 - revision,
                        status=status,
                    )
                )
        lost = sum(status == "missing" for *_, status in found)
        message = (
            f"Verified {len(taken)} depots of a copy: {len(found) - lost} damaged "
            f"revisions, {lost} lost."
        )
        self.log.tell(self.server, "archives_verified", message, at=ended_at)

    def _drills(self) -> None:
        """Add one a month: the third failed, and the fourth found an old copy."""
        firsts = [
            at
            for at in self._nights(dt.time(DRILLED_AT))
            if at.astimezone(dt.UTC).day == 1
        ]
        for month, at in enumerate(firsts):
            left = len(firsts) - month
            self._drill(
                at,
                trouble=NO_COMMON if left == 4 else "",
                finding=OLD_COPY if left == 3 else "",
            )

    def _drill(self, at: dt.datetime, *, trouble: str, finding: str) -> None:
        chance = self.studio.chance
        took = chance.uniform(34, 58)
        sandbox = self.sandbox(
            f"drill-{self.server.pk}-{at:%Y%m%d-%H%M%S}",
            purpose=PURPOSE.DRILL,
            at=at,
            seconds=12 * 3600 if trouble else took + 6,
            host=self.abroad,
            is_ready=not trouble,
        )
        lost = dt.timedelta(hours=47) if finding else dt.timedelta(minutes=55)
        copy_of = at - lost
        drill = self.studio.rows.add(
            Drill(
                sandbox=sandbox,
                oldest_hours=24,
                requested_at=at,
                copy_of=None if trouble else copy_of,
                answered_at=None if trouble else at + dt.timedelta(seconds=took),
                change=None if trouble else self.change_at(copy_of),
                ended_at=at + dt.timedelta(seconds=9 if trouble else took + 1),
                trouble=trouble,
                finding=finding,
            )
        )
        assert drill.ended_at is not None
        where = sandbox.site.name
        kind, message = (
            "drill_passed",
            f"It answered at {where} after {took:.0f} s, 55 min behind at change "
            f"{drill.change}.",
        )
        if trouble:
            message = f"It could not be brought up at {where}. {trouble}"
            kind = "drill_failed"
        elif finding:
            kind = "drill_found_old_copy"
            message = f"It answered at {where} after {took:.0f} s. {finding}"
        self.log.tell(self.server, kind, message, at=drill.ended_at)
