"""Empty a clone, many entries at a time, without ever leaving it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from provisioner.gateways.hosts.ownership import check_root
from provisioner.gateways.hosts.trees.run import EntryFailed, Walker, run_walk

OPERATION = "remove contents"


@dataclass(frozen=True, kw_only=True)
class RemovalProgress:
    """`entries` were handled so far: removed or failed."""

    entries: int
    removed: int
    failed: int


@dataclass(frozen=True, kw_only=True)
class RemovalReport:
    """The outcome for the entries below the root, which itself is kept.

    Directories that could not be emptied are not counted. What remains in them is in
    `failures` or in `skipped`, which are mount points and subvolumes. Beyond a thousand
    failures, `failures_file` has all of them, one JSON list [path, errno] per line.
    """

    entries: int
    removed: int
    failed_count: int
    failures: tuple[EntryFailed, ...]
    failures_file: Path | None
    skipped: tuple[str, ...]
    is_stopped: bool


def remove_contents(
    root: Path,
    *,
    progress: Callable[[RemovalProgress], None] = lambda seen: None,
    should_stop: Callable[[], bool] | None = None,
    walker: Walker | None = None,
) -> RemovalReport:
    """Remove everything below `root` that is on its filesystem.

    Safe to repeat and to kill at any point. Without `walker`, the compiled one is used
    if there is one.

    Raises: Refused (the root is not a real directory); Unreachable (the file server
    stopped answering).

    Source: unlinkat(2), openat(2).
    """
    check_root(root, operation=OPERATION)

    def relay(counts: Counter[str], seconds: float) -> None:
        progress(
            RemovalProgress(
                entries=counts["entries"],
                removed=counts["done"],
                failed=counts["failed"],
            )
        )

    told = run_walk(
        root,
        owner=None,
        operation=OPERATION,
        not_permitted=f"it may not be removed by uid {os.geteuid()}",
        progress=relay,
        should_stop=should_stop,
        walker=walker,
    )
    return RemovalReport(
        entries=told.counts["entries"],
        removed=told.counts["done"],
        failed_count=told.counts["failed"],
        failures=tuple(told.failures),
        failures_file=told.failures_file,
        skipped=tuple(told.skipped),
        is_stopped=told.is_stopped,
    )
