"""Files that a client does not have, found by walking its tree ourselves.

`p4 reconcile -a` reports files “present in your workspace, but missing in the depot”.
It says nothing of a file that somebody else has added to the depot meanwhile and that
is not on the have list. Nor does it report names that are not UTF-8, or files outside
the view.

run_as.py starts it as the uid that owns the tree. Directories are opened one below the
other, no link is followed, and other filesystems are not entered.

Source: p4 reconcile, p4 have;
https://help.perforce.com/helix-core/server-apps/cmdref/current/Content/CmdRef/p4_reconcile.html
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from provisioner.gateways.hosts.clearing import Versioned
from provisioner.gateways.hosts.descent import directories
from provisioner.gateways.hosts.run_as import run_module_as
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.ignoring import ignoring
from provisioner.gateways.perforce.types import PerforceAccount

WALK_WITHIN_SECONDS = 4 * 3600.0

Json = dict[str, Any]


def untracked_as(
    account: PerforceAccount,
    *,
    client: str,
    client_root: str,
    root: Path,
    ignore: tuple[str, ...],
    uid: int,
    gid: int,
) -> list[str]:
    """Return files and links that are not on the have list, as paths from the root.

    Opened files are included; paths that the `ignore` patterns (as in P4IGNORE) exclude
    are not. A directory that uid and gid may not list is reported itself, as its
    contents are unknown. Bytes that are not UTF-8 are escaped as by os.fsdecode.
    `client_root` is the client's Root, `root` the same directory on this host.

    Raises: as PerforceGateway.files.local_paths; ChildFailed.
    """
    answer = run_module_as(
        __name__,
        request={
            "account": dataclasses.asdict(account),
            "client": client,
            "client_root": client_root,
            "root": str(root),
            "ignore": list(ignore),
        },
        uid=uid,
        gid=gid,
        timeout_seconds=WALK_WITHIN_SECONDS,
    )
    paths: list[str] = answer["paths"]
    return paths


def run(request: Json, show: Callable[[Json], None]) -> Json:
    """Run the request, for run_module_as.

    Raises: any GatewayError of `p4 have`.
    """
    client_root = request["client_root"]
    known = Versioned(Path(client_root))
    gateway = PerforceGateway(PerforceAccount(**request["account"]))
    gateway.files.local_paths(request["client"], known.add)
    with ignoring(tuple(request["ignore"]), root=client_root) as is_ignored:
        paths = sorted(
            os.fsdecode(path)
            for path in leaves_below(Path(request["root"]))
            if not known.has_file(path) and not is_ignored(path)
        )
    return {"paths": paths}


def leaves_below(root: Path) -> Iterator[bytes]:
    """Yield all files, links, and directories we may not list, as paths from the root.

    Devices, sockets and pipes have no content, and are left out.
    """
    closed: list[str] = []
    for directory in directories(root, on_closed=closed.append):
        for entry in directory.entries:
            if entry.is_symlink() or entry.is_file(follow_symlinks=False):
                yield os.fsencode(directory.path_of(entry.name))
        yield from map(os.fsencode, closed)
        closed.clear()
    yield from map(os.fsencode, closed)
