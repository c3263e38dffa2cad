"""Perforce verbs that read or write a client's files, run as their owner."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from provisioner.gateways.hosts.clearing import ClearReport
from provisioner.gateways.hosts.run_as import run_module_as
from provisioner.gateways.perforce.types import (
    LockUse,
    NotDone,
    OpenedFile,
    Part,
    PerforceAccount,
    PopulateReport,
    ReconcileFinding,
    ReopenReport,
    Shelf,
    ShelveReport,
    SyncPhase,
    SyncProgress,
    SyncReport,
    TreeSize,
)

# Time limits, not estimates: the first sync of a large product takes an hour.
SYNC_WITHIN_SECONDS = 12 * 3600.0
RECONCILE_WITHIN_SECONDS = 4 * 3600.0
CLEAR_WITHIN_SECONDS = 4 * 3600.0
SHELVE_WITHIN_SECONDS = 4 * 3600.0
_LOCAL = "provisioner.gateways.perforce.local"
_CLEARING = "provisioner.gateways.hosts.clearing"


def sync_as(
    account: PerforceAccount,
    *,
    client: str,
    change: int,
    uid: int,
    gid: int,
    on_progress: Callable[[SyncProgress], None],
    replace_leftovers: bool = False,
    parts: Sequence[Part] = (),
    in_batches: bool = False,
    expected: TreeSize | None = None,
    on_command: Callable[[LockUse], None] = lambda use: None,
) -> SyncReport:
    """Bring the client's files to the change, written by uid and gid.

    `parts`, `in_batches`, `expected` and `on_command` are as in
    PerforceGateway.files.sync.

    Safe to repeat after an interruption, with `replace_leftovers` also after a kill;
    use that only for trees that nobody works in. Without root the files belong to the
    caller.

    Raises: as PerforceGateway.files.sync; ChildFailed.
    Source: p4 sync //client/...@change.
    """

    def show(seen: dict[str, Any]) -> None:
        if "lock" in seen:
            on_command(LockUse(**seen["lock"]))
        else:
            phase = SyncPhase(seen["phase"])
            on_progress(SyncProgress(**{**seen, "phase": phase}))

    answer = run_module_as(
        _LOCAL,
        request=_request(
            account,
            verb="sync",
            client=client,
            change=change,
            replace_leftovers=replace_leftovers,
            parts=[dataclasses.asdict(part) for part in parts],
            in_batches=in_batches,
            expected=expected and dataclasses.asdict(expected),
        ),
        uid=uid,
        gid=gid,
        timeout_seconds=SYNC_WITHIN_SECONDS,
        on_progress=show,
    )
    return SyncReport(**answer)


def populate_as(
    account: PerforceAccount,
    *,
    client: str,
    since: int,
    change: int,
    uid: int,
    gid: int,
    on_progress: Callable[[int, int], None],
) -> PopulateReport:
    """Bring a clone from one change to another, written by uid and gid.

    Raises: as PerforceGateway.files.populate; ChildFailed.
    Source: p4 sync -p.
    """
    answer = run_module_as(
        _LOCAL,
        request=_request(
            account, verb="populate", client=client, since=since, change=change
        ),
        uid=uid,
        gid=gid,
        timeout_seconds=SYNC_WITHIN_SECONDS,
        on_progress=lambda seen: on_progress(seen["done"], seen["total"]),
    )
    return PopulateReport(**answer)


def restore_as(
    account: PerforceAccount,
    *,
    client: str,
    uid: int,
    gid: int,
    in_batches: bool = False,
) -> list[str]:
    """Fetch again, as uid and gid, every file that differs from the have list.

    For trees that nobody works in. Returns depot paths. `in_batches` is as in
    PerforceGateway.files.reconcile_preview. Safe to repeat.

    Raises: as PerforceGateway.files.restore; ChildFailed.
    Source: p4 reconcile -n -e -d, p4 sync -f path#have.
    """
    answer = run_module_as(
        _LOCAL,
        request=_request(
            account, verb="restore_files", client=client, in_batches=in_batches
        ),
        uid=uid,
        gid=gid,
        timeout_seconds=SYNC_WITHIN_SECONDS,
    )
    files: list[str] = answer["files"]
    return files


def clear_as(
    account: PerforceAccount,
    *,
    client: str,
    client_root: Path,
    root: Path,
    uid: int,
    gid: int,
    on_progress: Callable[[int], None],
) -> ClearReport:
    """Remove, as uid and gid, everything below the Root that the client does not have.

    `client_root` is the client's Root, `root` the same directory on this host.

    Raises: as clearing.run; ChildFailed.
    """
    answer = run_module_as(
        _CLEARING,
        request=_request(
            account, client=client, client_root=str(client_root), root=str(root)
        ),
        uid=uid,
        gid=gid,
        timeout_seconds=CLEAR_WITHIN_SECONDS,
        on_progress=lambda seen: on_progress(seen["removed"]),
    )
    return ClearReport(**{**answer, "failures": tuple(answer["failures"])})


def reconcile_as(
    account: PerforceAccount,
    *,
    client: str,
    untracked: bool,
    ignore: tuple[str, ...],
    uid: int,
    gid: int,
    in_batches: bool = False,
) -> list[ReconcileFinding]:
    """Compare the client's files with the have list, reading as uid and gid.

    Opens nothing. `untracked`, `ignore` and `in_batches` are as in
    PerforceGateway.files.reconcile_preview.

    Raises: as PerforceGateway.files.reconcile_preview; ChildFailed.
    Source: p4 reconcile -n.
    """
    answer = run_module_as(
        _LOCAL,
        request=_request(
            account,
            verb="reconcile_preview",
            client=client,
            untracked=untracked,
            ignore=list(ignore),
            in_batches=in_batches,
        ),
        uid=uid,
        gid=gid,
        timeout_seconds=RECONCILE_WITHIN_SECONDS,
    )
    return [ReconcileFinding(**finding) for finding in answer["findings"]]


def shelve_as(
    account: PerforceAccount, *, client: str, workspace: str, uid: int, gid: int
) -> ShelveReport:
    """Shelve what the account's user has opened on the client, reading as uid and gid.

    `account` is that of the user, with their ticket: see PerforceGateway.user_ticket.

    Raises: as PerforceGateway.shelves.shelve_opened; ChildFailed.
    Source: p4 shelve.
    """
    answer = run_module_as(
        _LOCAL,
        request=_request(
            account, verb="shelve_opened", client=client, workspace=workspace
        ),
        uid=uid,
        gid=gid,
        timeout_seconds=SHELVE_WITHIN_SECONDS,
    )
    return ShelveReport(
        shelves=tuple(
            Shelf(**{**shelf, "files": tuple(shelf["files"])})
            for shelf in answer["shelves"]
        ),
        not_shelved=tuple(NotDone(**item) for item in answer["not_shelved"]),
        moved=answer["moved"],
    )


def reopen_as(
    account: PerforceAccount,
    *,
    client: str,
    files: Sequence[OpenedFile],
    descriptions: Mapping[str, str],
    shelves: Sequence[Shelf],
    empty_changes: Sequence[str] = (),
    uid: int,
    gid: int,
) -> ReopenReport:
    """Open files again as the account's user had them opened, working as uid and gid.

    Raises: as PerforceGateway.shelves.reopen; ChildFailed.
    Source: p4 edit -k, p4 add, p4 delete -k, p4 move -k, p4 unshelve.
    """
    answer = run_module_as(
        _LOCAL,
        request=_request(
            account,
            verb="reopen",
            client=client,
            files=[dataclasses.asdict(file) for file in files],
            descriptions=dict(descriptions),
            shelves=[dataclasses.asdict(shelf) for shelf in shelves],
            empty_changes=list(empty_changes),
        ),
        uid=uid,
        gid=gid,
        timeout_seconds=SHELVE_WITHIN_SECONDS,
    )
    return ReopenReport(
        opened=tuple(answer["opened"]),
        not_opened=tuple(NotDone(**item) for item in answer["not_opened"]),
        changes=answer["changes"],
    )


def _request(account: PerforceAccount, **what: Any) -> dict[str, Any]:
    return {"account": dataclasses.asdict(account), **what}
