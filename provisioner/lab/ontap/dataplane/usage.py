"""How much space volumes take, without making a request wait for a long walk."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from typing import TYPE_CHECKING

from provisioner.lab.ontap.dataplane.trees import measure_tree
from provisioner.lab.ontap.records import LIVE, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_FRESH_SECONDS = 2.0
_PATIENCE_SECONDS = 0.05


class Usage:
    """Measured sizes of trees.

    A small tree is measured while the request waits; a large one in the background,
    and until that is done the size known before is given (a clone's: its parent's).
    """

    def __init__(self, array: Array) -> None:
        """Measure the volumes of `array`."""
        self._array = array
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, int]] = {}
        self._running: dict[str, Future[int]] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ontap-usage")

    def used_bytes(self, volume: Volume) -> int:
        """Return what the volume's active files occupy, shared blocks included."""
        with self._lock:
            known = self._known.get(volume.uuid)
            if known is not None and time.monotonic() - known[0] < _FRESH_SECONDS:
                return known[1]
            running = self._running.get(volume.uuid)
            if running is None:
                running = self._pool.submit(self._measure, volume)
                self._running[volume.uuid] = running
        try:
            return running.result(_PATIENCE_SECONDS)
        except NotYet:
            return known[1] if known is not None else volume.inherited_bytes

    def _measure(self, volume: Volume) -> int:
        size = measure_tree(
            self._array.volume_path(volume), stopped=self._array.stopping
        )
        with self._lock:
            self._known[volume.uuid] = (time.monotonic(), size)
            self._running.pop(volume.uuid, None)
        return size

    def forget(self, volume_uuid: str) -> None:
        """Drop what is known of a volume that is gone."""
        with self._lock:
            self._known.pop(volume_uuid, None)

    def total_bytes(self) -> int:
        """Return what all the volumes occupy, blocks shared with a parent once."""
        return sum(
            max(0, self.used_bytes(volume) - volume.inherited_bytes)
            for volume in self._array.store.select(Volume, phase=LIVE)
        )

    def reserved_bytes(self) -> int:
        """Return what thick volumes hold back beyond what they occupy."""
        return sum(
            max(0, volume.size_bytes - self.used_bytes(volume))
            for volume in self._array.store.select(
                Volume, phase=LIVE, guarantee="volume"
            )
            if volume.state == "online"
        )

    def stop(self) -> None:
        """Stop measuring; the array must be stopping."""
        self._pool.shutdown(wait=True, cancel_futures=True)
