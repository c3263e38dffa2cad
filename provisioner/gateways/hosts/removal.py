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
    """`entries` are those handled so far: removed or failed."""

    entries: int
    removed: int
    failed: int


@dataclass(frozen=True, kw_only=True)
class RemovalReport:
    """What became of the entries below the root; the root itself stays.

    Directories in which something stayed are not counted: what stayed is in
    `failures` (all of it in `failures_file` beyond a thousand, a JSON list
    [path, errno] per line) or in `skipped`, which are mount points and subvolumes.
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
    """Remove everything below `root`, on its filesystem alone.

    Safe to repeat and to kill at any point: what is gone is gone. `walker` None is the
    compiled one where there is one.

    Raises: Refused where the root is no directory of its own; Unreachable when the
    file server stops answering.

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
