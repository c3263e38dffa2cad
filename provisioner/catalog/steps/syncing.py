"""The progress of a sync: files, bytes, rate and remaining time."""

from __future__ import annotations

import time
from collections.abc import Callable

from provisioner.catalog.steps.run import TemplateRun
from provisioner.gateways.perforce.types import SyncPhase, SyncProgress
from provisioner.lib.pace import Pace
from provisioner.lib.sizes import size_text
from provisioner.lib.times import duration_text

UP_TO_DATE_TEXT = "Every file is already there"
PLANNING_TEXT = "Perforce is planning the sync"
FINISHING_TEXT = "Receiving the last file; Perforce is updating the have list"


def show_sync(run: TemplateRun) -> Callable[[SyncProgress], None]:
    """Return a callback that shows a sync's progress on its step."""
    meter = SyncMeter()

    def show(progress: SyncProgress) -> None:
        meter.see(progress, now=time.monotonic())
        run.progress(
            meter.text,
            done=progress.files,
            total=progress.files_total,
            unit="files",
            phase=progress.phase,
            figures=meter.figures,
        )

    return show


class SyncMeter:
    """Computes rates and a time estimate from what a sync has done so far.

    Files take time as well as bytes, so the estimate uses the mean of both shares.
    Neither many small files nor a few large ones distort it for long.
    """

    def __init__(self) -> None:
        self._files = Pace()
        self._bytes = Pace()
        self._share = Pace()
        self._progress: SyncProgress | None = None

    def see(self, progress: SyncProgress, *, now: float) -> None:
        """Record what has arrived at a time of a monotonic clock."""
        self._progress = progress
        if progress.phase == SyncPhase.PLANNING:
            return
        self._files.see(progress.files, now=now)
        self._bytes.see(progress.bytes, now=now)
        self._share.see(_share(progress), now=now)

    @property
    def seconds_left(self) -> float | None:
        return self._share.seconds_left(total=1.0)

    @property
    def figures(self) -> dict[str, float | None]:
        """The figures, named as in the API."""
        progress = self._progress
        if progress is None or progress.phase == SyncPhase.PLANNING:
            return {}
        left = self.seconds_left
        return {
            "bytes": progress.bytes,
            "bytes_total": progress.bytes_total,
            "files_per_second": round(self._files.per_second, 1),
            "bytes_per_second": round(self._bytes.per_second),
            "seconds_left": None if left is None else round(left),
        }

    @property
    def text(self) -> str:
        progress = self._progress
        if progress is None or progress.phase == SyncPhase.PLANNING:
            return PLANNING_TEXT
        is_known = bool(progress.files_total)
        if not is_known and not progress.files:
            return UP_TO_DATE_TEXT
        files = f"{self._files.per_second:,.0f}"
        parts = [
            f"{size_text(progress.bytes)} of {size_text(progress.bytes_total)}"
            if is_known
            else f"{size_text(progress.bytes)} so far",
            f"{files} {'file' if files == '1' else 'files'} and "
            f"{size_text(round(self._bytes.per_second))} a second",
        ]
        is_under_way = progress.files < progress.files_total
        if progress.phase == SyncPhase.FINISHING:
            return ". ".join([", ".join(parts), *[FINISHING_TEXT] * is_under_way])
        left = self.seconds_left
        if left is not None:
            parts.append(f"about {duration_text(left)} left")
        return ", ".join(parts)


def _share(progress: SyncProgress) -> float:
    """Return how much of a sync is done, from 0 to 1."""
    shares = [
        done / total
        for done, total in (
            (progress.files, progress.files_total),
            (progress.bytes, progress.bytes_total),
        )
        if total
    ]
    return min(sum(shares) / len(shares), 1.0) if shares else 0.0
