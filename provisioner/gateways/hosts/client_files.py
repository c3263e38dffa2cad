"""Perforce verbs that read or write a client's files, run as the owner of the files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from provisioner.gateways.hosts.run_as import run_module_as
from provisioner.gateways.perforce.types import (
    PerforceAccount,
    ReconcileFinding,
    SyncProgress,
    SyncReport,
)

# The end of a wait, not an estimate: a first sync of a large product takes an hour.
SYNC_WITHIN_SECONDS = 12 * 3600.0
RECONCILE_WITHIN_SECONDS = 4 * 3600.0
_LOCAL = "provisioner.gateways.perforce.local"


def sync_as(
    account: PerforceAccount,
    *,
    client: str,
    change: int,
    uid: int,
    gid: int,
    on_progress: Callable[[SyncProgress], None],
    replace_leftovers: bool = False,
) -> SyncReport:
    """Bring the client's files to the change, written by uid and gid.

    Safe to repeat after an interruption, with `replace_leftovers` also after a kill; it
    is for trees in which nobody works. Without root the files are the caller's.

    Raises: what PerforceGateway.sync raises; ChildFailed.
    Source: p4 sync //client/...@change.
    """
    answer = run_module_as(
        _LOCAL,
        request=_request(
            account,
            verb="sync",
            client=client,
            change=change,
            replace_leftovers=replace_leftovers,
        ),
        uid=uid,
        gid=gid,
        timeout_seconds=SYNC_WITHIN_SECONDS,
        on_progress=lambda seen: on_progress(SyncProgress(**seen)),
    )
    return SyncReport(**answer)


def reconcile_as(
    account: PerforceAccount,
    *,
    client: str,
    untracked: bool,
    ignore: tuple[str, ...],
    uid: int,
    gid: int,
) -> list[ReconcileFinding]:
    """Compare the client's files with the have list, reading as uid and gid.

    Opens nothing. With `untracked` files that Perforce does not know are listed too,
    but for those that the `ignore` patterns (as in P4IGNORE) leave out.

    Raises: what PerforceGateway.reconcile_preview raises; ChildFailed.
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
        ),
        uid=uid,
        gid=gid,
        timeout_seconds=RECONCILE_WITHIN_SECONDS,
    )
    return [ReconcileFinding(**finding) for finding in answer["findings"]]


def _request(account: PerforceAccount, **what: Any) -> dict[str, Any]:
    return {"account": dataclasses.asdict(account), **what}
