"""How much space volumes take."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from provisioner.lab.ontap.dataplane.trees import measure_tree
from provisioner.lab.ontap.records import LIVE, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_FRESH_SECONDS = 10.0


class Usage:
    """Measured sizes of trees, remembered for a few seconds."""

    def __init__(self, array: Array) -> None:
        """Measure the volumes of `array`."""
        self._array = array
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, int]] = {}

    def used_bytes(self, volume: Volume) -> int:
        """Return what the volume's active files occupy, shared blocks included."""
        with self._lock:
            measured_at, size = self._known.get(volume.uuid, (0.0, 0))
        if time.monotonic() - measured_at < _FRESH_SECONDS and measured_at:
            return size
        size = measure_tree(self._array.volume_path(volume))
        with self._lock:
            self._known[volume.uuid] = (time.monotonic(), size)
        return size

    def forget(self, volume_uuid: str) -> None:
        """Measure again next time."""
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
            for volume in self._array.store.select(Volume, phase=LIVE)
            if volume.guarantee == "volume" and volume.state == "online"
        )
