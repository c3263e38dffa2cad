"""Files that a client does not have, found by a walk of our own.

`p4 reconcile -a` reports files “present in your workspace, but missing in the depot”.
It does not report a file that somebody else has added to the depot since and that is
not on the have list, nor names that are not UTF-8, nor files outside the view.

Directories are opened one below the other, no link is followed, and other filesystems
are not entered.

Source: p4 reconcile, p4 have;
https://help.perforce.com/helix-core/server-apps/cmdref/current/Content/CmdRef/p4_reconcile.html
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from provisioner.gateways.hosts.clearing import Versioned
from provisioner.gateways.hosts.descent import directories
from provisioner.gateways.owners import HOUR, works_on_files
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.ignoring import ignoring
from provisioner.gateways.perforce.types import PerforceAccount


@works_on_files(within_seconds=4 * HOUR)
def untracked_files(
    account: PerforceAccount,
    *,
    client: str,
    client_root: str,
    root: Path,
    ignore: tuple[str, ...],
) -> list[str]:
    """Return files and links that are not on the have list, as paths from the root.

    Opened files are included; paths that the `ignore` patterns (as in P4IGNORE) exclude
    are not. A directory that we may not list is reported itself, as its contents are
    unknown. Bytes that are not UTF-8 are escaped as by os.fsdecode. `client_root` is
    the client's Root, `root` the same directory on this host.

    Raises: as PerforceGateway.files.local_paths.
    """
    known = Versioned(Path(client_root))
    PerforceGateway(account).files.local_paths(client, known.add)
    with ignoring(ignore, root=client_root) as is_ignored:
        return sorted(
            os.fsdecode(path)
            for path in leaves_below(root)
            if not known.has_file(path) and not is_ignored(path)
        )


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
