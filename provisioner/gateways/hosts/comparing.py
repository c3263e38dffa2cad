"""Compare a workspace's files with Perforce before they are deleted. Nothing may be
missed.

`p4 reconcile` compares what the client has. It misses files that the owner has removed
from the client's view. A walk of our own finds files that the client does not have: see
untracked.py.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.hosts.untracked import untracked_files
from provisioner.gateways.owners import Owner
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.paths import client_path_to_local
from provisioner.gateways.perforce.specs import (
    ViewRefused,
    rename_view,
    split_view_line,
)
from provisioner.gateways.perforce.standins import Purpose, StandIns
from provisioner.gateways.perforce.types import (
    ClientSpec,
    FlushWatch,
    HaveList,
    LockUse,
    Part,
    ReconcileFinding,
)


def compare_files(
    gateway: PerforceGateway,
    reader: PerforceGateway,
    *,
    client: ClientSpec,
    recorded: ClientSpec,
    stand_ins: StandIns,
    change: int,
    parts: Sequence[Part] = (),
    pinned: HaveList,
    seen_at: Path,
    ignore: tuple[str, ...],
    owner: Owner,
    in_batches: bool = False,
    on_command: Callable[[LockUse | None], bool] | None = None,
) -> list[ReconcileFinding]:
    """Return files that differ from the have list: changed, missing and untracked ones.

    `client` is the workspace's client as it is now, `recorded` as we created it;
    `change` with `parts` is what it was flushed to then, and `pinned` what it had
    after that. `seen_at` is the root on this host.

    If the view has changed since, files that it no longer maps are compared with
    `change` under the recorded view, through a client of `stand_ins` that is deleted
    afterwards. A file there at another revision counts as changed.

    Untracked is every file that is neither on the have list nor opened, inside the view
    or outside, whether or not the depot has such a file by now.

    `in_batches` is as in PerforceGateway.files.flush, `on_command` as in FlushWatch.
    Both gateways may be ours; `reader`, which reads the files, may be that of the
    client's owner. It reads them as the `owner` of the files.

    Raises: as run_as, PerforceGateway.files.reconcile_preview and local_paths; if the
    view has changed, also as clients.save, files.flush and clients.mapped_paths.
    """

    def reconciled(name: str, by: PerforceGateway) -> list[ReconcileFinding]:
        return run_as(
            owner,
            by.files.reconcile_preview,
            name,
            untracked=False,
            in_batches=in_batches,
            on_command=on_command,
        )

    # An attempt that was killed may have left one.
    stand_ins.remove_all(gateway, Purpose.COMPARE)
    claimed = dataclasses.replace(reader.account, host=client.host)
    found = reconciled(client.name, PerforceGateway(claimed))
    if not is_same_view(client, recorded):
        stand_in = _stand_in(client, recorded, stand_ins)
        gateway.clients.save(stand_in)
        try:
            gateway.files.flush_towards(
                stand_in.name,
                change=change,
                parts=parts,
                wanted=pinned,
                in_batches=in_batches,
                watch=FlushWatch(on_command=on_command) if on_command else None,
            )
            under_recorded = reconciled(stand_in.name, reader)
        finally:
            stand_ins.remove_all(gateway, Purpose.COMPARE)
        found += _not_mapped(gateway, client, under_recorded, seen=found)
    untracked = run_as(
        owner,
        untracked_files,
        claimed,
        client=client.name,
        client_root=client.root,
        root=seen_at,
        ignore=ignore,
    )
    told = {finding.path for finding in found} | _opened(gateway, client)
    paths = (os.path.join(client.root.rstrip("/"), path) for path in untracked)
    return found + [
        ReconcileFinding(action="add", depot_file="", path=path)
        for path in paths
        if path not in told
    ]


def _not_mapped(
    gateway: PerforceGateway,
    client: ClientSpec,
    findings: Sequence[ReconcileFinding],
    *,
    seen: Sequence[ReconcileFinding],
) -> list[ReconcileFinding]:
    """Return what differs among files that the client's view no longer maps."""
    paths = {finding.path for finding in seen}
    others = [
        finding
        for finding in findings
        if finding.action != "delete" and finding.path not in paths
    ]
    mapped = gateway.clients.mapped_paths(
        client.name, [finding.path for finding in others]
    )
    return [finding for finding in others if finding.path not in mapped]


def _opened(gateway: PerforceGateway, client: ClientSpec) -> set[str]:
    """Return the local paths of the client's opened files that its view maps."""
    return {
        client_path_to_local(file.client_file, client=client.name, root=client.root)
        for file in gateway.changes.list_opened(client.name)
        if file.client_file
    }


def is_same_view(client: ClientSpec, recorded: ClientSpec) -> bool:
    """Return whether two clients of one name map the same files."""
    if client.stream != recorded.stream:
        return False
    return _lines(client) == _lines(recorded)


def _lines(spec: ClientSpec) -> list[object]:
    try:
        return [split_view_line(line) for line in spec.view if line.strip()]
    except ViewRefused:
        return list(spec.view)


def _stand_in(
    client: ClientSpec, recorded: ClientSpec, stand_ins: StandIns
) -> ClientSpec:
    """Return a client of ours with the recorded view at the same root.

    It is not a stream client: its view would follow the stream as it is now.
    """
    name = stand_ins.new_name(Purpose.COMPARE)
    return dataclasses.replace(
        recorded,
        name=name,
        root=client.root,
        host="",
        # The drift check reads from this whose client it is.
        description=f"Compares files for the Cloneyard workspace {client.name} "
        f"({stand_ins.tag}).\n",
        options=recorded.options.replace(" locked", " unlocked"),
        line_end=client.line_end,
        stream="",
        type="",
        server_id="",
        view=rename_view(recorded.view, old=recorded.name, new=name),
        updated_at=None,
        accessed_at=None,
    )
