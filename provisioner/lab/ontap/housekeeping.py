"""Periodic work of the array: the recovery queue, schedules, sizes, old jobs."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from typing import TYPE_CHECKING

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.operations import recovery

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_EVERY_SECONDS = 0.5
_SIZES_EVERY_TURNS = 2
_JOBS_EVERY_TURNS = 20
# Of a check of all sizes: it takes a tenth of a processor at most.
_REST_TIMES = 10


class Housekeeping:
    """A thread that checks twice a second."""

    def __init__(self, array: Array) -> None:
        """Work for `array` until it stops."""
        self._array = array
        self._sizes_at = 0.0
        self._thread = threading.Thread(
            target=self._run, name="ontap-housekeeping", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread; the array must be stopping."""
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        for turn in itertools.count():
            if self._array.stopping.wait(_EVERY_SECONDS):
                return
            self._empty_queue()
            if self._array.settings.schedules:
                self._array.clock.run_schedules()
            if turn % _SIZES_EVERY_TURNS == 0:
                self._check_sizes()
            if turn % _JOBS_EVERY_TURNS == 0:
                self._array.jobs.forget_old()

    def _check_sizes(self) -> None:
        """Check all volumes, unless they are so many that it was done just now."""
        began = time.monotonic()
        if began >= self._sizes_at:
            self._array.sizes.check()
            ended = time.monotonic()
            self._sizes_at = ended + (ended - began) * _REST_TIMES

    def _empty_queue(self) -> None:
        for volume in recovery.overdue(self._array):
            with contextlib.suppress(OntapError):  # it was recovered or purged
                self._array.jobs.start(recovery.purge(self._array, volume))
