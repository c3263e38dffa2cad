"""What the studio's plans kept of its server: checkpoints, and verified archives."""

from __future__ import annotations

import datetime as dt

from provisioner.demo import production
from provisioner.demo.company.sandboxes import FORMER_HOST, PURPOSE, Copies, ended
from provisioner.recipes import retention
from provisioner.recipes.models import (
    Checkpoint,
    CheckpointPlan,
    DamagedFile,
    Verification,
    VerificationPlan,
    VerifiedDepot,
)

GIB = 2**30
KEPT_LONG_ENOUGH = "Kept long enough."
NIGHTLY, WEEKLY = dt.time(2, 30), dt.time(3, 0)
SATURDAY = 5
FAILED_NIGHTS_AGO = 23
NO_ROOM = (
    "The directory has 3.1 GiB free, and the checkpoint needs 9.4 GiB. Make room, or "
    "give the plan another directory."
)
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


class Recipes:
    """Makes what sandboxes of the plans left, and the plans."""

    def __init__(self, copies: Copies) -> None:
        self._copies, self._studio = copies, copies.studio

    def follow(self) -> None:
        """Add all of it, oldest first, and what the plans say of it now."""
        copies = self._copies
        directory = production.directory().parent / "checkpoints"
        copies.plan(
            CheckpointPlan,
            host=copies.host,
            directory=str(directory),
            last=self._checkpoints(),
        )
        copies.plan(VerificationPlan, host=copies.host, last=self._verifications())

    def _tell(self, kind: str, message: str, *, at: dt.datetime) -> str:
        self._copies.log.tell(self._copies.server, kind, message, at=at)
        return message

    # --- checkpoints

    def _checkpoints(self) -> tuple[dt.datetime, str]:
        """Add one each night, and remove those that no rule keeps; tell of the last."""
        made: list[Checkpoint] = []
        nights = self._copies.due(NIGHTLY)
        said = ""
        for night, at in enumerate(nights):
            if len(nights) - night == FAILED_NIGHTS_AGO:
                said = self._fail(at)
                continue
            checkpoint, said = self._checkpoint(at)
            made.append(checkpoint)
            self._prune(made, at=checkpoint.made_at)
        return nights[-1], said

    def _fail(self, at: dt.datetime) -> str:
        sandbox = self._copies.planned(
            PURPOSE.CHECKPOINT,
            at=at,
            seconds=12 * 3600,
            is_ready=False,
            failure=NO_ROOM,
        )
        message = f"The checkpoint by {sandbox.name} failed. {NO_ROOM}"
        return self._tell("checkpoint_failed", message, at=at)

    def _checkpoint(self, at: dt.datetime) -> tuple[Checkpoint, str]:
        studio = self._studio
        change = self._copies.change_at(at)
        dump = studio.chance.uniform(170, 230) * change / 59_000
        replay = dump * studio.chance.uniform(1.2, 1.5)
        plain = int(9.4 * GIB * change / 59_000)
        sandbox = self._copies.planned(
            PURPOSE.CHECKPOINT, at=at, seconds=dump + replay + 60, is_ready=False
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
        return made, self._tell("checkpoint_made", message, at=made_at)

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

    # --- verified archives

    def _verifications(self) -> tuple[dt.datetime, str]:
        """Add one each Saturday: one found damage, and the next that it was mended."""
        saturdays = [x for x in self._copies.due(WEEKLY) if x.weekday() == SATURDAY]
        said = ""
        for week, at in enumerate(saturdays):
            found = DAMAGED if len(saturdays) - week == DAMAGED_WEEKS_AGO else ()
            said = self._verify(at, found=found)
        return saturdays[-1], said

    def _verify(
        self, at: dt.datetime, *, found: tuple[tuple[str, int, str], ...]
    ) -> str:
        rows, calendar = self._studio.rows, self._studio.calendar
        taken = {
            name: calendar.seconds(usual, spread=0.06).total_seconds()
            for name, _, usual, _ in DEPOTS
            if usual is not None
        }
        total = sum(taken.values())
        sandbox = self._copies.planned(PURPOSE.VERIFY, at=at, seconds=total + 40)
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
                        change=self._copies.change_at(at) - 4_000 - revision,
                        status=status,
                    )
                )
        lost = sum(status == "missing" for *_, status in found)
        message = (
            f"Verified {len(taken)} depots of a copy: {len(found) - lost} damaged "
            f"revisions, {lost} lost."
        )
        return self._tell("archives_verified", message, at=ended_at)
