"""How a checkpoint is made, replayed elsewhere, compared and kept. Safe to repeat.

It is that of the original: the copy is neither upgraded nor made another server, and
nothing is started. p4d gets its journal and log as options, so it writes nowhere else.

Source: "Backup and recovery" of the Helix Core administrator's guide: a checkpoint is
replayed into a root without a database; p4d -h (-jd, -jr, -z).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from provisioner.engine.results import StepResult, find_result
from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts import checkpoint_files as files
from provisioner.gateways.hosts.checkpoint_files import CheckpointContents
from provisioner.gateways.hosts.p4d import P4d
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.owners import Ids
from provisioner.lib import clocks
from provisioner.lib.refusals import StepRefused
from provisioner.recipes.models import Checkpoint
from provisioner.recipes.queries import checkpoint_plan_of, kept_at
from provisioner.recipes.retention import Kept, to_remove
from provisioner.sandboxes.models import Sandbox, SandboxOperation
from provisioner.sandboxes.steps.checking import ensure_server_fits, require_program
from provisioner.sandboxes.steps.containing import require_within
from provisioner.sandboxes.steps.run import Checked, SandboxRun, refusing

LONGEST_SECONDS = 24 * 3600.0
MADE = "checkpoint.gz"
ROOT = "root"
AGAIN = "again.gz"
DIFFERENCES_NAMED = 10
# Its trial replay takes as much again as the database, at most, and the two dumps are
# compressed.
ROOM_OF_DATABASE = 1.5
# They say when a server ran and was dumped, and who was there then.
VOLATILE = (
    *("db.counters", "db.monitor", "db.sendq", "db.sendq.pt", "db.topology"),
    *("db.upgrades", "db.upgrades.rp"),
)


@dataclass(frozen=True)
class Placed(StepResult):
    """Where the checkpoint is to be kept."""

    step = "place"
    directory: str


@dataclass(frozen=True)
class Dumped(StepResult):
    """How long the dump took."""

    step = "dump"
    seconds: float


@dataclass(frozen=True)
class Replayed(StepResult):
    """How long the replay elsewhere took; `refused` is why p4d refused it."""

    step = "replay"
    seconds: float
    refused: str = ""


@dataclass(frozen=True)
class Compared(StepResult):
    """What the checkpoint holds, and how its replay differs."""

    step = "compare"
    contents: CheckpointContents
    differs: list[str] = field(default_factory=list)


class CheckpointRun(SandboxRun):
    """One attempt at a step of a checkpoint."""

    @property
    def directory(self) -> Path:
        return Path(self.result_of(Placed).directory)

    @property
    def work(self) -> Path:
        """Where the checkpoint is made."""
        return files.work_directory(self.directory, str(self.sandbox.tag))

    @property
    def copy(self) -> P4d:
        """The copied database."""
        is_case_sensitive = self.result_of(Checked).is_case_sensitive
        return self.p4d(ignores_case=not is_case_sensitive)

    @property
    def elsewhere(self) -> P4d:
        """The database of the trial replay."""
        root = self.work / ROOT
        return replace(self.copy, root=root, journal=root / "journal", log=root / "log")


def ensure_same_release(run: CheckpointRun) -> Checked:
    """Ask the original what it is: its checkpoint is made by the same release.

    Raises: StepRefused.
    """
    checked = ensure_server_fits(run)
    if checked.release != run.sandbox.release:
        raise StepRefused(
            f"{run.server.name} runs {checked.release}. A checkpoint by p4d "
            f"{run.sandbox.release} could not be replayed there. Nothing was cloned. "
            "Choose the server's own release.",
            code="p4d_of_another_release",
        )
    return checked


def ensure_place_fits(run: CheckpointRun) -> Placed:
    """Check that p4d is there, and the directory that the server's plan names.

    Raises: StepRefused.
    """
    require_program(run)
    plan = checkpoint_plan_of(run.server)
    if plan.pk is None or plan.host_id != run.sandbox.host_id:
        raise StepRefused(
            f"The plan of {run.server.name} names no directory on "
            f"{run.sandbox.host.name} any more. Nothing was cloned. Change the plan.",
            code="no_checkpoint_plan",
        )
    with refusing("no_place_for_checkpoint"):
        run_as(run.owner, files.require_directory, Path(plan.directory))
    return Placed(plan.directory)


def ensure_dumped(run: CheckpointRun) -> Dumped:
    """Dump the copied database into a file of its own.

    Where its volumes were copied one by one, the journal is replayed first.

    Raises: StepRefused (links lead out, no room, in p4d's own words).
    """
    p4d = run.copy
    p4d.stop()
    require_within(run, p4d)
    p4d.remove("server.locks")
    run.sandbox.refresh_from_db(fields=["consistency"])
    if run.sandbox.consistency == Sandbox.Consistency.ORDERED:
        with refusing("journal_not_replayed"):
            p4d.replay(p4d.journal)
    size = run_as(run.owner, files.database_bytes, p4d.root)
    with refusing("no_place_for_checkpoint"):
        work = run_as(
            run.owner,
            files.begin_work,
            run.directory,
            str(run.sandbox.tag),
            int(size * ROOM_OF_DATABASE),
        )
    began = time.monotonic()
    with refusing("dump_failed"):
        p4d.checkpoint(work / MADE, within_seconds=LONGEST_SECONDS)
    return Dumped(time.monotonic() - began)


def ensure_replayed(run: CheckpointRun) -> Replayed:
    """Replay the checkpoint into an empty root, and dump that.

    Raises: StepRefused (no room).
    """
    other = run.elsewhere
    other.stop()
    with refusing("no_place_for_checkpoint"):
        run_as(run.owner, files.empty_directory, other.root)
    began = time.monotonic()
    try:
        other.restore(run.work / MADE, within_seconds=LONGEST_SECONDS)
        seconds = time.monotonic() - began
        other.checkpoint(other.root / AGAIN, within_seconds=LONGEST_SECONDS)
    except Refused as error:
        return Replayed(time.monotonic() - began, refused=error.sentence)
    return Replayed(seconds)


def ensure_compared(run: CheckpointRun) -> Compared:
    """Read the checkpoint to its end, and compare it with the dump of its replay.

    Raises: StepRefused (it is torn).
    """
    with refusing("checkpoint_torn"):
        made = run_as(run.owner, files.read_checkpoint, run.work / MADE)
    differs = []
    if not made.is_as_said:
        differs.append(f"Its MD5 is {made.md5}, and p4d wrote {made.said_md5}.")
    if refused := run.result_of(Replayed).refused:
        return Compared(made, [*differs, refused])
    try:
        again = run_as(run.owner, files.read_checkpoint, run.elsewhere.root / AGAIN)
    except Refused as error:
        return Compared(made, [*differs, error.sentence])
    differs += files.differences(made, again, volatile=VOLATILE)
    return Compared(made, differs)


def ensure_kept(run: CheckpointRun) -> None:
    """Move the checkpoint into its directory, record it, and remove the rest.

    Raises: StepRefused.
    """
    sandbox, compared = run.sandbox, run.result_of(Compared)
    sandbox.refresh_from_db(fields=["taken_at"])
    assert sandbox.taken_at is not None
    contents = compared.contents
    name = (
        f"{run.server.name}.{sandbox.taken_at:%Y%m%d-%H%M%S}."
        f"{sandbox.tag.hex[:6]}.ckp.gz"
    )
    with refusing("checkpoint_not_kept"):
        path = run_as(
            run.owner, files.keep_checkpoint, run.work / MADE, name, contents.md5
        )
        run_as(run.owner, files.end_work, run.directory, str(sandbox.tag))
    with run.writing():
        Checkpoint.objects.update_or_create(
            sandbox=sandbox,
            defaults={
                "path": str(path),
                "change": contents.change,
                "journal": contents.journal,
                "size_bytes": contents.size_bytes,
                "plain_bytes": contents.plain_bytes,
                "sha256": contents.sha256,
                "md5": contents.md5,
                "dump_seconds": run.result_of(Dumped).seconds,
                "replay_seconds": run.result_of(Replayed).seconds,
                "tables": {k: v.records for k, v in sorted(contents.tables.items())},
                "is_proven": not compared.differs,
                "remark": " ".join(compared.differs[:DIFFERENCES_NAMED]),
            },
        )


def ensure_pruned(run: CheckpointRun) -> None:
    """Remove the checkpoints of this server on this host that no rule keeps.

    Those whose file is gone are no longer counted, so nothing relies on them.
    """
    plan = checkpoint_plan_of(run.server)
    rows = {row.pk: row for row in kept_at(run.server, run.sandbox.host)}
    sizes = [(row.path, row.size_bytes) for row in rows.values()]
    gone = set(run_as(run.owner, files.not_there, sizes))
    for row in rows.values():
        if row.path in gone:
            _note_removed(run, row, because="The file is not there any more.")
    kept = [
        Kept(
            number=row.pk,
            taken_at=row.sandbox.taken_at or row.made_at,
            is_proven=row.is_proven,
        )
        for row in rows.values()
        if row.path not in gone
    ]
    for number in to_remove(
        kept, keep_daily=plan.keep_daily, keep_weekly=plan.keep_weekly
    ):
        with refusing("checkpoint_not_removed"):
            run_as(run.owner, files.remove_checkpoint, Path(rows[number].path))
        _note_removed(run, rows[number], because="Kept long enough.")


def _note_removed(run: CheckpointRun, row: Checkpoint, *, because: str) -> None:
    with run.writing():
        Checkpoint.objects.filter(pk=row.pk, removed_at__isnull=True).update(
            removed_at=clocks.database_now(), removed_because=because
        )


def ensure_proven(run: CheckpointRun) -> None:
    """End with a failure if the replay elsewhere was not the same.

    Raises: StepRefused.
    """
    differs = run.result_of(Compared).differs
    if differs:
        raise StepRefused(
            "The checkpoint is kept, but it is not proven: replayed elsewhere it "
            f"differs. {' '.join(differs[:DIFFERENCES_NAMED])} Check the original with "
            "p4d -xv, and retry.",
            code="checkpoint_not_proven",
        )


# --- the end of its sandbox


def clear(sandbox: Sandbox) -> None:
    """Remove on this host what was made and not kept."""
    owner = Ids(uid=sandbox.host.uid, gid=sandbox.host.gid)
    for directory in _directories(sandbox):
        run_as(owner, files.end_work, directory, str(sandbox.tag))


def left(sandbox: Sandbox) -> list[str]:
    """Return what is still there of a checkpoint that was not kept."""
    tag = str(sandbox.tag)
    works = [files.work_directory(each, tag) for each in _directories(sandbox)]
    return [f"directory {work}" for work in works if work.exists()]


def _directories(sandbox: Sandbox) -> set[Path]:
    """Return the directories that its attempts wrote to."""
    attempts = sandbox.operations.filter(kind=SandboxOperation.CHECKPOINT)
    found = (find_result(attempt, Placed) for attempt in attempts)
    return {Path(each.directory) for each in found if each is not None}
