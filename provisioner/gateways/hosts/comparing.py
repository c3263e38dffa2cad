"""Comparing a workspace's files with Perforce before they go: nothing may be missed.

`p4 reconcile` alone misses two things: files where the owner has taken lines out of the
client's view, and files whose names are not UTF-8, at which it fails.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from pathlib import Path

from provisioner.gateways.errors import NotFound, Refused
from provisioner.gateways.hosts.client_files import reconcile_as
from provisioner.gateways.hosts.odd_names import find_odd_names
from provisioner.gateways.hosts.run_as import ModuleBroke
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.specs import (
    ViewRefused,
    rename_view,
    split_view_line,
)
from provisioner.gateways.perforce.types import (
    ClientSpec,
    Part,
    PerforceAccount,
    ReconcileFinding,
)

LOOK_SUFFIX = "-look"
"""Ends the name of the client that stands in for one whose view was changed."""

REPLACED = "\ufffd"
"""Stands in a decoded name for what could not be decoded."""

_MEANS_SOMETHING = re.compile(r"[^\w./\udc80-\udcff-]+", re.ASCII)


def compare_files(
    gateway: PerforceGateway,
    account: PerforceAccount,
    *,
    client: ClientSpec,
    recorded: ClientSpec,
    change: int,
    parts: Sequence[Part] = (),
    seen_at: Path,
    ignore: tuple[str, ...],
    uid: int,
    gid: int,
) -> list[ReconcileFinding]:
    """Return what differs from the have list: changed, missing, and untracked files.

    `client` is the workspace's client as it is now, `recorded` as it was handed out,
    and `change` with `parts` what it was flushed to then; `seen_at` is where we see
    the root.
    Where the view was changed since, files that it does not map any more are compared
    with `change` under the recorded view, by a client `look_name(client.name)` that is
    gone afterwards; what lies there at another revision counts as changed.

    Both accounts may be ours; `account`, which reads the files, may be the owner's.

    Raises: what client_files.reconcile_as raises; what PerforceGateway.save_client,
    flush and mapped_paths raise, where the view was changed.
    """

    def reconciled(name: str, as_whom: PerforceAccount) -> list[ReconcileFinding]:
        return _reconciled(
            as_whom,
            client=name,
            root=client.root,
            seen_at=seen_at,
            ignore=ignore,
            uid=uid,
            gid=gid,
        )

    gateway.delete_client(look_name(client.name))  # a look that was killed left it
    claimed = dataclasses.replace(account, host=client.host)
    found = reconciled(client.name, claimed)
    if is_same_view(client, recorded):
        return found
    look = _stand_in(client, recorded)
    gateway.save_client(look)
    try:
        gateway.flush(look.name, change=change, parts=parts)
        under_recorded = reconciled(look.name, account)
    finally:
        gateway.delete_client(look.name)
    seen = {finding.path for finding in found}
    others = [
        finding
        for finding in under_recorded
        if finding.action != "delete" and finding.path not in seen
    ]
    mapped = gateway.mapped_paths(client.name, [finding.path for finding in others])
    return found + [finding for finding in others if finding.path not in mapped]


def look_name(client: str) -> str:
    """Return the name of the client that stands in for this one for a while."""
    return f"{client}{LOOK_SUFFIX}"


def is_same_view(client: ClientSpec, recorded: ClientSpec) -> bool:
    """Say whether two clients of one name map the same, however it is written."""
    if client.stream != recorded.stream:
        return False
    return _lines(client) == _lines(recorded)


def _lines(spec: ClientSpec) -> list[object]:
    try:
        return [split_view_line(line) for line in spec.view if line.strip()]
    except ViewRefused:
        return list(spec.view)


def _stand_in(client: ClientSpec, recorded: ClientSpec) -> ClientSpec:
    """Return a client of ours with the recorded view at the same root.

    Not of the stream: its view would be what the stream maps now.
    """
    name = look_name(client.name)
    return dataclasses.replace(
        recorded,
        name=name,
        root=client.root,
        host="",
        description=f"Looks at {client.name} before it is retired.",
        options=recorded.options.replace(" locked", " unlocked"),
        line_end=client.line_end,
        stream="",
        type="",
        server_id="",
        view=rename_view(recorded.view, old=recorded.name, new=name),
        updated_at=None,
        accessed_at=None,
    )


def _reconciled(
    account: PerforceAccount,
    *,
    client: str,
    root: str,
    seen_at: Path,
    ignore: tuple[str, ...],
    uid: int,
    gid: int,
) -> list[ReconcileFinding]:
    """Reconcile; names in the tree that stand against that, look for ourselves."""

    def reconcile(patterns: tuple[str, ...]) -> list[ReconcileFinding]:
        return reconcile_as(
            account,
            client=client,
            untracked=True,
            ignore=patterns,
            uid=uid,
            gid=gid,
        )

    try:
        found = reconcile(ignore)
    except NotFound:
        raise
    except (Refused, ModuleBroke):
        tops, files = find_odd_names(seen_at)
        if not tops:
            raise
    else:
        if not any(REPLACED in finding.path for finding in found):
            return found
        tops, files = find_odd_names(seen_at)
        if not tops:
            return found
    patterns = tuple(f"/{_literal(path)}" for path in tops)
    return reconcile((*ignore, *patterns)) + [
        ReconcileFinding(
            action="add", depot_file="", path=os.path.join(root.rstrip("/"), path)
        )
        for path in files
    ]


def _literal(path: str) -> str:
    """Return a pattern of P4IGNORE that matches this path.

    It may match more, but nothing without these bytes that are not UTF-8, and all that
    has such bytes is found by ourselves.
    """
    return _MEANS_SOMETHING.sub("*", path)
