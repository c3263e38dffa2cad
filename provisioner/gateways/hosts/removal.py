"""Empty a clone, many entries at a time, without ever leaving it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from provisioner.gateways.hosts.ownership import check_root
from provisioner.gateways.hosts.trees.run import Walker, WalkReport, run_walk, unheard

OPERATION = "remove contents"


def remove_contents(
    root: Path,
    *,
    progress: Callable[[WalkReport], None] = unheard,
    walker: Walker | None = None,
) -> WalkReport:
    """Remove everything below `root` that is on its filesystem; the root is kept.

    Safe to repeat and to kill at any point. Directories that could not be emptied are
    not counted: what remains in them is in `failures` or `skipped`. Without `walker`,
    the compiled one is used if there is one.

    Raises: Refused (the root is not a real directory); Unreachable (the file server
    stopped answering).

    Source: unlinkat(2), openat(2).
    """
    check_root(root, operation=OPERATION)
    return run_walk(
        root,
        owner=None,
        operation=OPERATION,
        not_permitted=f"it may not be removed by uid {os.geteuid()}",
        progress=progress,
        walker=walker,
    )
