"""Unsubmitted work in a workspace: how much there is, and what to archive."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from provisioner.gateways.hosts.ownership import check_root
from provisioner.gateways.hosts.rescue_archive import ArchiveEntry
from provisioner.gateways.hosts.rescues.reading import CannotCheck, Tree
from provisioner.gateways.perforce.paths import client_path_to_local, unescape_path
from provisioner.gateways.perforce.types import (
    OpenedFile,
    PendingChange,
    ReconcileFinding,
    ShelvedFile,
    ShelveReport,
)

Counts = dict[str, dict[str, int]]

KINDS = {"edit": "changed", "delete": "missing", "add": "untracked"}
"""Our name for a finding of reconcile, by its action."""

GONE = ("delete", "move/delete")


@dataclass(frozen=True, kw_only=True)
class UnsubmittedFiles:
    """Everything that retiring a workspace would lose, and where its files are.

    `root` is the client's Root as the server has it; `shelved` maps changes to their
    shelved files.
    """

    client: str
    root: str
    findings: Sequence[ReconcileFinding] = ()
    opened: Sequence[OpenedFile] = ()
    pending: Sequence[PendingChange] = ()
    shelved: Mapping[int, Sequence[ShelvedFile]] = field(default_factory=dict)


def count_unsubmitted(unsubmitted: UnsubmittedFiles, *, seen_at: Path) -> Counts:
    """Return {kind: {"count", "bytes"}}, without kinds that have nothing.

    Kinds are opened, changed, missing, untracked, pending (changes without files or
    shelf) and shelved. Sizes are those on disk, where readable without following a
    link; for shelved files, those on the server. `seen_at` is the root on this host.

    Raises: Refused (that is not a real directory).
    """
    counts: Counts = {}

    def add(kind: str, size_bytes: int) -> None:
        count = counts.setdefault(kind, {"count": 0, "bytes": 0})
        count["count"] += 1
        count["bytes"] += size_bytes

    check_root(seen_at, operation="look at files")
    with Tree.at(seen_at) as tree:
        for finding in sorted(unsubmitted.findings, key=lambda f: f.path):
            kind = KINDS[finding.action]
            path = _relative(finding.path, root=unsubmitted.root)
            add(kind, 0 if kind == "missing" else _size_of(tree, path))
        for file in unsubmitted.opened:
            gone = file.action in GONE
            add("opened", 0 if gone else _size_of(tree, _place(file, unsubmitted)))
    for change in unsubmitted.pending:
        if not change.files and not change.is_shelved:
            add("pending", 0)
    for files in unsubmitted.shelved.values():
        for shelved in files:
            add("shelved", shelved.size_bytes)
    return counts


def entries_to_archive(
    unsubmitted: UnsubmittedFiles,
    reports: Iterable[ShelveReport] = (),
    *,
    seen_at: Path | None = None,
) -> list[ArchiveEntry]:
    """Return the work that no shelf holds: opened but not shelved, and not opened.

    `reports` are the results of shelving, one for each user who had files opened. Files
    that are missing, or opened for delete and not shelved, are included, so the
    manifest lists them. With `seen_at`, the root on this host, so are files on disk
    whose names are opened for delete: neither a shelf nor reconcile covers them.
    """
    shelved: set[str] = set()
    reasons: dict[str, str] = {}
    for report in reports:
        shelved |= {path for shelf in report.shelves for path in shelf.files}
        reasons |= {item.depot_file: item.reason for item in report.not_shelved}
    entries = [
        _entry(
            file,
            unsubmitted,
            reason=reasons.get(
                file.depot_file, f"It could not be shelved as {file.user}."
            ),
        )
        for file in unsubmitted.opened
        if file.depot_file not in shelved
    ]
    if seen_at is not None:
        with Tree.at(seen_at) as tree:
            entries += [
                _entry(
                    file, unsubmitted, reason="Opened for delete, but still on disk."
                )
                for file in unsubmitted.opened
                if file.action in GONE
                and file.depot_file in shelved
                and _has_content(tree, _place(file, unsubmitted))
            ]
    return entries + [
        ArchiveEntry(
            path=_relative(finding.path, root=unsubmitted.root),
            kind=KINDS[finding.action],
            action=finding.action,
            depot_path=finding.depot_file,
        )
        for finding in unsubmitted.findings
    ]


def _entry(
    file: OpenedFile, unsubmitted: UnsubmittedFiles, *, reason: str
) -> ArchiveEntry:
    return ArchiveEntry(
        path=_place(file, unsubmitted),
        kind="opened",
        action=file.action,
        depot_path=file.depot_file,
        revision=file.revision,
        change=file.change,
        type=file.type,
        reason=reason,
    )


def opened_before(
    opened: Iterable[OpenedFile], reports: Iterable[ShelveReport]
) -> list[OpenedFile]:
    """Return the opened files with the changes they were in before they were shelved.

    Keep these for `shelves.reopen`: shelving moves files into changes of ours, and an
    attempt that was killed may have done so before anything was recorded.
    """
    moved: dict[str, str] = {}
    for report in reports:
        moved |= report.moved
    return [
        dataclasses.replace(file, change=moved.get(file.change, file.change))
        for file in opened
    ]


def _size_of(tree: Tree, path: str) -> int:
    """Return the size of a plain file, 0 for anything else or unreadable."""
    try:
        return tree.size_of(path)
    except CannotCheck:
        return 0


def _has_content(tree: Tree, path: str) -> bool:
    """Return whether anything but a directory has this path."""
    try:
        return tree.has_content(path)
    except CannotCheck:
        return False


def _place(file: OpenedFile, unsubmitted: UnsubmittedFiles) -> str:
    """Return the path of an opened file from the root."""
    if not file.client_file:
        # The view no longer maps it, so only its depot path is known.
        return unescape_path(file.depot_file.lstrip("/"))
    local = client_path_to_local(
        file.client_file, client=unsubmitted.client, root=unsubmitted.root
    )
    return _relative(local, root=unsubmitted.root)


def _relative(path: str, *, root: str) -> str:
    """Return a path relative to the root; a path outside of it stays as it is."""
    return path.removeprefix(root.rstrip("/") + "/")
