"""Progress of a sync, counted from the server's record of each file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from provisioner.gateways.perforce.types import SyncPhase, SyncProgress, TreeSize

_SECONDS_BETWEEN_REPORTS = 0.2


class SyncCounter:
    """Adds up files and bytes and reports them at most five times a second.

    The first record of each command has its totals, so no extra query is needed.
    Consecutive commands add up. The server sends the record of a file just before its
    content: so a file has arrived when the next record comes, and the last one when the
    command ends. `P4.Progress` would need `-q`, and would then count files without
    bytes.

    Until the last command begins, the totals are those `expected`, or unknown.
    """

    def __init__(
        self,
        on_progress: Callable[[SyncProgress], None],
        *,
        expected: TreeSize | None = None,
    ) -> None:
        self._on_progress = on_progress
        self._expected = expected or TreeSize(files=0, bytes=0)
        self.is_last_command = True
        self._reported_at = 0.0
        self._files_total = 0
        self._bytes_total = 0
        self._is_arriving = False
        self._is_over = False
        self._bytes_arriving = 0
        self.files = 0
        self.bytes = 0

    def count(self, record: Mapping[str, Any]) -> None:
        """Count a record of `p4 sync`."""
        if "totalFileCount" in record:
            self._arrived()
            self._files_total = self.files + int(record["totalFileCount"])
            self._bytes_total = self.bytes + int(record.get("totalFileSize", 0))
        if "depotFile" in record:
            self._arrived()
            self._is_arriving = True
            if record.get("action") != "deleted":
                self._bytes_arriving = int(record.get("fileSize") or 0)
        now = time.monotonic()
        if now - self._reported_at >= _SECONDS_BETWEEN_REPORTS:
            self._report_at(now)

    def report(self) -> None:
        """Report now, however recent the last report is."""
        self._report_at(time.monotonic())

    def end(self) -> None:
        """Count the last file, which has arrived when the last command ends."""
        self._arrived()
        self._is_over = True
        self.report()

    def _arrived(self) -> None:
        self.files += self._is_arriving
        self.bytes += self._bytes_arriving
        self._is_arriving, self._bytes_arriving = False, 0

    @property
    def _phase(self) -> SyncPhase:
        if self._is_over:
            return SyncPhase.FINISHING
        if not self._files_total:
            return SyncPhase.PLANNING
        is_last = self.files + self._is_arriving >= self._files_total
        is_finishing = is_last and self.is_last_command
        return SyncPhase.FINISHING if is_finishing else SyncPhase.RECEIVING

    @property
    def _totals(self) -> TreeSize:
        if not self.is_last_command:
            return self._expected
        return TreeSize(files=self._files_total, bytes=self._bytes_total)

    def _report_at(self, now: float) -> None:
        self._reported_at = now
        self._on_progress(
            SyncProgress(
                phase=self._phase,
                files=self.files,
                files_total=self._totals.files,
                bytes=self.bytes,
                bytes_total=self._totals.bytes,
            )
        )
