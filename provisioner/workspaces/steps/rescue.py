"""Rescue unsubmitted work: shelve it as its owner, or archive it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from provisioner.audit_log.actions import record_event
from provisioner.catalog.pins import parts_of
from provisioner.gateways.errors import NotFound, Refused
from provisioner.gateways.hosts.inventory import (
    UnsubmittedFiles,
    entries_to_archive,
    opened_before,
)
from provisioner.gateways.hosts.rescue_archive import (
    ArchiveEntry,
    ArchiveIncomplete,
    ArchiveProblem,
    ArchiveReport,
    EarlierArchive,
    archive_files,
)
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import ShelveReport
from provisioner.lib.refusals import StepRefused
from provisioner.workspaces.models import Rescue, Workspace
from provisioner.workspaces.queries import last_rescue
from provisioner.workspaces.states import client_of
from provisioner.workspaces.steps.clients import find_own_client
from provisioner.workspaces.steps.run import WorkspaceRun
from provisioner.workspaces.steps.unsubmitted import CheckResult

PROBLEMS_NAMED = 10
# Of a rescue, what a later retirement goes on with.
ARCHIVE = (
    *("has_archive", "directory", "archived_files", "archived_bytes"),
    *("archive_sha256", "archive_seen"),
)
ADDED_TO = (
    *ARCHIVE,
    *("shelves", "reverted", "descriptions", "has_work", "is_complete"),
)
# What cannot be archived at all, and holds no content to lose.
HARMLESS = ("special",)


def rescue_work(run: WorkspaceRun, check: CheckResult) -> Rescue | None:
    """Save everything that the check found, in shelved changes or in the archive.

    What was synced after the snapshot is kept as a list. Nothing is reverted yet, and
    the files stay as they are. Safe to repeat; None if there is nothing to keep.

    Raises: StepRefused if something could not be saved.
    """
    if check.files is None:
        return None
    differences = _have_differences(run)
    rescue = _row_of(run)
    if not check.findings and not differences and not rescue.is_complete:
        return None
    rescue.inventory = check.counts
    rescue.have_differences = differences
    reports = _shelve_for_each_user(run, check.files)
    if client_of(run.workspace).is_whole:
        # Nothing was reverted yet: what was noted and is not opened now was let go.
        rescue.reverted, rescue.descriptions, rescue.shelves = [], {}, []
    _note_shelved(rescue, check.files, reports)
    _archive(run, check, reports, rescue=rescue)
    rescue.has_work = rescue.has_archive or bool(rescue.shelves)
    rescue.is_complete = True
    with run.writing():
        rescue.save()
        record_event(
            run.workspace,
            kind="work_rescued",
            message=_sentence(rescue),
            actor=run.operation.requested_by,
            data={"directory": rescue.directory, "shelves": _counted(rescue)},
        )
    return rescue


def keep_have_list(run: WorkspaceRun, check: CheckResult) -> None:
    """Record what was synced after the snapshot, so that a restore can sync it again.

    When work is discarded, this continues even if the server does not answer.
    """
    if check.files is None:
        return
    rescue = _row_of(run)
    try:
        rescue.have_differences = _have_differences(run)
    except (NotFound, Refused):
        return
    if rescue.have_differences or rescue.is_complete:
        rescue.is_complete = True
        with run.writing():
            rescue.save()


def _row_of(run: WorkspaceRun) -> Rescue:
    """Return the rescue's row; a retirement that continues another one adds to it."""
    rescue = Rescue.objects.filter(operation=run.operation).first()
    if rescue is not None:
        return rescue
    is_whole = client_of(run.workspace).is_whole
    earlier = None if is_whole else last_rescue(run.workspace)
    settled = {name: getattr(earlier, name) for name in ADDED_TO if earlier}
    return Rescue(workspace=run.workspace, operation=run.operation, **settled)


def _have_differences(run: WorkspaceRun) -> list[tuple[str, int]]:
    """Return what was synced since the snapshot, as differences from the pin.

    A workspace that was never ready is skipped: it may not be flushed, and nobody
    restores it.
    """
    if run.workspace.ready_at is None:
        return []
    perforce = run.perforce_for(run.workspace.client_name)
    return have_differences(run.workspace, perforce)


def have_differences(
    workspace: Workspace, perforce: PerforceGateway
) -> list[tuple[str, int]]:
    """Return what the workspace's client has besides its pin, with the revisions.

    `perforce` is seen from the client's host. What the pin has and the client does not
    has revision 0.
    """
    client, pin = workspace.client_name, workspace.snapshot
    have = perforce.files.have_list(client)
    if (have.count, have.digest) == (pin.have_count, pin.have_digest):
        return []
    return perforce.files.have_differences(
        client, change=pin.change, parts=parts_of(pin)
    )


def _note_shelved(
    rescue: Rescue, files: UnsubmittedFiles, reports: list[ShelveReport]
) -> None:
    """Record opened files and their changes, so that a restore can open them.

    Earlier records stay, since the files may have been reverted.
    """
    made_by_us = {change for report in reports for change in report.moved}
    opened = {file.depot_file for file in files.opened}
    rescue.reverted = [
        *(file for file in rescue.reverted if file["depot_file"] not in opened),
        *(dataclasses.asdict(file) for file in opened_before(files.opened, reports)),
    ]
    rescue.descriptions |= {
        str(change.change): change.description
        for change in files.pending
        if (change.files or not change.is_shelved)
        and str(change.change) not in made_by_us
    }
    shelves = [shelf for report in reports for shelf in report.shelves]
    changes = {shelf.change for shelf in shelves}
    rescue.shelves = [
        *(shelf for shelf in rescue.shelves if shelf["change"] not in changes),
        *(dataclasses.asdict(shelf) for shelf in shelves),
    ]


def _shelve_for_each_user(
    run: WorkspaceRun, files: UnsubmittedFiles
) -> list[ShelveReport]:
    """Shelve each user's opened files, as that user where permitted."""
    users = sorted({file.user for file in files.opened})
    if not users:
        return []
    client = find_own_client(run)
    host = "" if client is None else client.host
    reports = (_shelved(run, user, host=host) for user in users)
    return [report for report in reports if report is not None]


def _shelved(run: WorkspaceRun, user: str, *, host: str) -> ShelveReport | None:
    """Shelve what a user has opened; None if we cannot act as that user."""
    run.progress(f"shelving what {user} has opened")
    return run.as_user(
        user,
        lambda perforce: run_as(
            run.workspace,
            perforce.shelves.shelve_opened,
            run.workspace.client_name,
            workspace=run.workspace.name,
        ),
        host=host,
    )


def _archive(
    run: WorkspaceRun,
    check: CheckResult,
    reports: list[ShelveReport],
    *,
    rescue: Rescue,
) -> None:
    """Archive the files that are in no shelf.

    A failed earlier attempt may have left a complete archive.
    """
    assert check.files is not None
    if check.seen_at is None:
        return
    entries = entries_to_archive(check.files, reports, seen_at=check.seen_at)
    if not entries:
        return
    if not run.site.rescue_root:
        raise StepRefused(
            f"{len(entries):,} files have to be archived, and the site "
            f"{run.site.name} has no rescue area. An administrator can give it one.",
            code="no_rescue_area",
        )
    earlier = Rescue.objects.last_archive(run.workspace)
    archive = _write_archive(
        run, check.seen_at, entries, rescue=rescue, earlier=earlier
    )
    if archive is not None:
        rescue.has_archive = True
        rescue.directory = str(archive.directory)
        rescue.archived_files = archive.files
        rescue.archived_bytes = archive.size_bytes
        rescue.archive_sha256 = archive.sha256
        rescue.archive_seen = archive.seen
    elif earlier is not None:
        for name in ARCHIVE:
            setattr(rescue, name, getattr(earlier, name))


def _write_archive(
    run: WorkspaceRun,
    root: Path,
    entries: list[ArchiveEntry],
    *,
    rescue: Rescue,
    earlier: Rescue | None,
) -> ArchiveReport | None:
    workspace = run.workspace

    def show(files: int) -> None:
        run.progress("archiving", done=files, total=len(entries), unit="files")

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
                "p4port": run.server.p4port_for_people,
                "shelves": _counted(rescue),
                "descriptions": rescue.descriptions,
            },
            only_complete=True,
            earlier=None if earlier is None else _as_earlier(earlier),
            progress=show,
        )
    except ArchiveIncomplete as incomplete:
        raise _incomplete(incomplete.problems) from incomplete
    except Refused as error:
        code = error.remote_code or "rescue_failed"
        raise StepRefused(error.sentence, code=code) from error


def _as_earlier(rescue: Rescue) -> EarlierArchive:
    return EarlierArchive(
        directory=rescue.directory,
        sha256=rescue.archive_sha256,
        seen=rescue.archive_seen,
    )


def _incomplete(problems: Iterable[ArchiveProblem]) -> StepRefused:
    missing = [p for p in problems if p.state not in HARMLESS]
    named = "; ".join(f"{p.path!r}: {p.reason}" for p in missing[:PROBLEMS_NAMED])
    return StepRefused(
        f"{len(missing):,} files could not be archived, so nothing was deleted and "
        f"nothing was kept of the archive: {named}.",
        code="rescue_incomplete",
    )


def _files(count: int) -> str:
    return f"{count:,} file" if count == 1 else f"{count:,} files"


def _counted(rescue: Rescue) -> list[dict[str, Any]]:
    """Return the shelves with the number of files instead of their paths."""
    return [{**shelf, "files": len(shelf["files"])} for shelf in rescue.shelves]


def _sentence(rescue: Rescue) -> str:
    said = []
    if rescue.shelves:
        files = sum(len(shelf["files"]) for shelf in rescue.shelves)
        changes = ", ".join(str(shelf["change"]) for shelf in rescue.shelves)
        said.append(f"{_files(files)} shelved in {changes}")
    if rescue.has_archive:
        said.append(f"{_files(rescue.archived_files)} archived in {rescue.directory}")
    return f"Rescued: {'; '.join(said) or 'nothing had to be moved'}."
