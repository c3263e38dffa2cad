"""Files that a client does not have, found by walking its tree ourselves.

`p4 reconcile -a` lists what is “present in your workspace, but missing in the depot”. A
file that somebody else has added to the depot meanwhile is neither that nor on the have
list, so it goes unsaid. So do names that are not UTF-8, and files outside the view.

Started by run_as.py as the uid that owns the tree. Directories are opened one below the
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
    """Return paths from the root of files and links that are not on the have list.

    What the `ignore` patterns (as in P4IGNORE) leave out is left out; opened files are
    among them. A directory that uid and gid may not list is one as well: nobody knows
    what is in it. Bytes that are not UTF-8 are escaped as os.fsdecode does.
    `client_root` is the client's Root, `root` where we see it.

    Raises: what PerforceGateway.files.local_paths raises; ChildFailed.
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
    """Do it, for run_module_as.

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
    """Yield paths from the root of all files, links, and directories we may not list.

    Devices, sockets and pipes hold no content, and are left out.
    """
    closed: list[str] = []
    for directory in directories(root, on_closed=closed.append):
        for entry in directory.entries:
            if entry.is_symlink() or entry.is_file(follow_symlinks=False):
                yield os.fsencode(directory.path_of(entry.name))
        yield from map(os.fsencode, closed)
        closed.clear()
    yield from map(os.fsencode, closed)
