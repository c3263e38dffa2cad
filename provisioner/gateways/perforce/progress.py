"""Progress of a sync, counted from what the server says about each file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from provisioner.gateways.perforce.types import SyncProgress

_SECONDS_BETWEEN_REPORTS = 0.2


class SyncCounter:
    """Adds up files and bytes and reports them at most five times a second.

    The server says a file just before it sends it. The first record also has the
    totals.
    """

    def __init__(self, on_progress: Callable[[SyncProgress], None]) -> None:
        self._on_progress = on_progress
        self._reported_at = 0.0
        self._files_total = 0
        self._bytes_total = 0
        self.files = 0
        self.bytes = 0

    def count(self, record: Mapping[str, Any]) -> None:
        self._files_total = int(record.get("totalFileCount", self._files_total))
        self._bytes_total = int(record.get("totalFileSize", self._bytes_total))
        if "depotFile" in record:
            self.files += 1
            if record.get("action") != "deleted":
                self.bytes += int(record.get("fileSize") or 0)
        if time.monotonic() - self._reported_at >= _SECONDS_BETWEEN_REPORTS:
            self.report()

    def report(self) -> None:
        self._reported_at = time.monotonic()
        self._on_progress(
            SyncProgress(
                files=self.files,
                files_total=self._files_total,
                bytes=self.bytes,
                bytes_total=self._bytes_total,
            )
        )
