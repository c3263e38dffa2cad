"""Rescuing what is not submitted: shelved as its owner, or into an archive."""

from __future__ import annotations

import dataclasses
import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts import client_files
from provisioner.gateways.hosts.inventory import entries_to_archive
from provisioner.gateways.hosts.rescue_archive import (
    ArchiveEntry,
    ArchiveProgress,
    ArchiveReport,
    archive_files,
)
from provisioner.gateways.perforce.types import PerforceAccount, ShelveReport
from provisioner.workspaces import states
from provisioner.workspaces.errors import StepRefused
from provisioner.workspaces.models import Rescue
from provisioner.workspaces.steps.looking import Look
from provisioner.workspaces.steps.run import StepRun

HAVE_NAME = "have.jsonl.gz"
PROBLEMS_NAMED = 10
# What cannot be archived at all, and holds no content to lose.
HARMLESS = ("special", "vanished")


def rescue_work(run: StepRun, look: Look) -> Rescue | None:
    """Have everything that the look found in shelved changes or in the archive.

    What was synced after the snapshot is kept as a list. Nothing is reverted yet, and
    the files stay as they are. Safe to repeat; None where there is nothing to keep.

    Raises: StepRefused where something could not be saved.
    """
    if look.files is None:
        return None
    pin = run.workspace.snapshot
    have = run.perforce.have_list(run.workspace.client_name)
    is_pinned = (have.count, have.digest) == (pin.have_count, pin.have_digest)
    can_archive = bool(run.site.rescue_root) and look.seen_at is not None
    if not look.findings and (is_pinned or not can_archive):
        return None
    rescue = _remembered(run, look)
    reports = [
        report
        for user in sorted({file.user for file in look.files.opened})
        if (report := _shelved(run, user)) is not None
    ]
    entries = entries_to_archive(look.files, reports, seen_at=look.seen_at)
    rescue.shelves = [
        dataclasses.asdict(shelf) for report in reports for shelf in report.shelves
    ]
    archive = _archived(run, look, entries, rescue=rescue, is_pinned=is_pinned)
    if archive is not None:
        rescue.directory = str(archive.directory)
        rescue.archived_files = archive.files
        rescue.archived_bytes = archive.size_bytes
        rescue.archive_sha256 = archive.sha256
    rescue.is_complete = True
    rescue.save()
    states.record_event(
        run.workspace,
        kind="work_rescued",
        message=_sentence(rescue),
        actor=run.operation.requested_by,
        data={"directory": rescue.directory, "shelves": _counted(rescue)},
    )
    return rescue


def _remembered(run: StepRun, look: Look) -> Rescue:
    """Note what is opened before anything is moved about: an undo opens it again."""
    assert look.files is not None
    rescue = Rescue.objects.filter(operation=run.operation).first()
    if rescue is None:
        rescue = Rescue(workspace=run.workspace, operation=run.operation)
    known = {file["depot_file"] for file in rescue.reverted}
    rescue.reverted = rescue.reverted + [
        dataclasses.asdict(file)
        for file in look.files.opened
        if file.depot_file not in known
    ]
    rescue.descriptions = {
        **{str(change.change): change.description for change in look.files.pending},
        **rescue.descriptions,
    }
    rescue.inventory = rescue.inventory or look.counts
    rescue.is_complete = False
    rescue.save()
    return rescue


def _shelved(run: StepRun, user: str) -> ShelveReport | None:
    """Shelve what a user has opened; None where we cannot act as that user."""
    account = account_of(run, user)
    if account is None:
        return None
    run.progress(f"shelving what {user} has opened")
    return client_files.shelve_as(
        account,
        client=run.workspace.client_name,
        workspace=run.workspace.name,
        uid=run.workspace.uid,
        gid=run.workspace.gid,
    )


def account_of(run: StepRun, user: str) -> PerforceAccount | None:
    """Return an account to act as this user with, None where ours may not."""
    ours = run.perforce_account
    if user == ours.user:
        return ours
    ticket = run.perforce.user_ticket(user)
    if ticket is None:
        return None
    return dataclasses.replace(ours, user=user, password=ticket)


def _archived(
    run: StepRun,
    look: Look,
    entries: list[ArchiveEntry],
    *,
    rescue: Rescue,
    is_pinned: bool,
) -> ArchiveReport | None:
    """Archive what no shelf has, and the have list where it is not the pin's."""
    can_archive = bool(run.site.rescue_root) and look.seen_at is not None
    if not can_archive and entries:
        raise StepRefused(
            f"{len(entries):,} files have to be archived, and the site "
            f"{run.site.name} has no rescue area. An administrator can give it one.",
            code="no_rescue_area",
        )
    if not can_archive or (not entries and is_pinned):
        return None
    assert look.seen_at is not None
    with tempfile.TemporaryDirectory(prefix="cloneyard-") as made:
        attachments = {}
        if not is_pinned:
            attachments[HAVE_NAME] = _have_file(run, Path(made))
            rescue.have = HAVE_NAME
        report = _write_archive(
            run, look.seen_at, entries, rescue=rescue, attachments=attachments
        )
    _refuse_incomplete(report)
    return report


def _write_archive(
    run: StepRun,
    root: Path,
    entries: list[ArchiveEntry],
    *,
    rescue: Rescue,
    attachments: dict[str, Path],
) -> ArchiveReport:
    workspace = run.workspace

    def show(progress: ArchiveProgress) -> None:
        run.progress(
            "archiving", done=progress.files, total=progress.files_total, unit="files"
        )

    try:
        return archive_files(
            root,
            entries,
            rescue_root=Path(run.site.rescue_root),
            owner=workspace.owner.username,
            workspace=workspace.name,
            tag=workspace.tag.hex[:6],
            uid=workspace.uid,
            gid=workspace.gid,
            metadata={
                "client": workspace.client_name,
                "template": workspace.template.name,
                "change": workspace.snapshot.change,
                "p4port": run.site.perforce_server.p4port,
                "shelves": _counted(rescue),
                "descriptions": rescue.descriptions,
            },
            attachments=attachments,
            progress=show,
        )
    except Refused as error:
        code = error.remote_code or "rescue_failed"
        raise StepRefused(error.sentence, code=code) from error


def _have_file(run: StepRun, directory: Path) -> Path:
    """Write what the client has, a JSON list [depot path, revision] per line."""
    path = directory / HAVE_NAME
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:

        def write(depot_path: str, revision: int) -> None:
            file.write(json.dumps([depot_path, revision]) + "\n")

        run.perforce.have_revisions(run.workspace.client_name, write)
    return path


def _refuse_incomplete(report: ArchiveReport) -> None:
    missing = [p for p in report.problems if p.state not in HARMLESS]
    if missing:
        named = "; ".join(f"{p.path!r}: {p.reason}" for p in missing[:PROBLEMS_NAMED])
        raise StepRefused(
            f"{len(missing):,} files could not be archived, so nothing was deleted: "
            f"{named}.",
            code="rescue_incomplete",
        )


def _counted(rescue: Rescue) -> list[dict[str, Any]]:
    """Return the shelves with how many files each has, instead of all their paths."""
    return [{**shelf, "files": len(shelf["files"])} for shelf in rescue.shelves]


def _sentence(rescue: Rescue) -> str:
    said = []
    if rescue.shelves:
        files = sum(len(shelf["files"]) for shelf in rescue.shelves)
        changes = ", ".join(str(shelf["change"]) for shelf in rescue.shelves)
        said.append(f"{files:,} files shelved in {changes}")
    if rescue.directory:
        said.append(f"{rescue.archived_files:,} files archived in {rescue.directory}")
    return f"Rescued: {'; '.join(said) or 'nothing had to be moved'}."


def read_have(rescue: Rescue) -> dict[str, int]:
    """Return the have list that was kept, by depot path.

    Raises: OSError where the rescue area does not have it (any more).
    """
    path = Path(rescue.directory) / rescue.have
    have: dict[str, int] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            row: list[Any] = json.loads(line)
            have[row[0]] = row[1]
    return have
