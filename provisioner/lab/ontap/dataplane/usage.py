"""How much space volumes take, without making a request wait for a long walk."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from typing import TYPE_CHECKING

from provisioner.lab.ontap.dataplane.quotas import bytes_by_subvolume, subvolume_id
from provisioner.lab.ontap.dataplane.trees import measure_tree
from provisioner.lab.ontap.records import LIVE, Snapshot, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_FRESH_SECONDS = 2.0
# A subvolume without files is one node of metadata, of the size that mkfs.btrfs takes.
_EMPTY_TREE_BYTES = 16 << 10
_PATIENCE_SECONDS = 0.05


def shared_inside(volume: Volume) -> int:
    """Return what the efficiency scanner let the volume's files share."""
    return int(str(volume.efficiency.get("sharing", 0)))


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
        self._counting = threading.Lock()
        self._counted_at = float("-inf")
        self._last_count: dict[int, int] | None = None
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

    def own_bytes(self, volume: Volume) -> int:
        """Return what the volume takes that no other volume brought.

        For a clone that is what it has written; a volume that is no clone answers for
        all its files, those that were its parent's before a split included.
        """
        used = self.used_bytes(volume)
        if self._array.plane.method == "copy":
            return used
        counted = self._counted()
        if counted is None:
            return max(0, used - self._inherited_at_most(volume))
        try:
            written = counted.get(subvolume_id(self._array.volume_path(volume)), 0)
        except OSError:
            return 0  # it is being removed
        if volume.parent_uuid is not None:
            return written
        return max(written, used - shared_inside(volume))

    def _inherited_at_most(self, volume: Volume) -> int:
        return volume.inherited_bytes if volume.parent_uuid is not None else 0

    def inherited_bytes(self, volume: Volume) -> int:
        """Return what a clone has of its base snapshot; any other volume: nothing.

        The metadata that every clone begins with is its own, but takes nothing away.
        """
        if volume.parent_uuid is None:
            return 0
        own = self.own_bytes(volume)
        if self._counted() is not None:
            own = max(0, own - _EMPTY_TREE_BYTES)
        return max(0, self.used_bytes(volume) - own)

    def _counted(self) -> dict[int, int] | None:
        """Return the bytes by subvolume, or None where nobody counts them."""
        if self._array.plane.method != "btrfs":
            return None
        with self._counting:
            if time.monotonic() - self._counted_at > _FRESH_SECONDS:
                try:
                    found = bytes_by_subvolume(self._array.root / "data")
                except OSError:
                    found = None
                self._last_count = found
                self._counted_at = time.monotonic()
            return self._last_count

    def forget(self, volume_uuid: str) -> None:
        """Drop what is known of a volume that is gone."""
        with self._lock:
            self._known.pop(volume_uuid, None)

    def total_bytes(self) -> int:
        """Return what all volumes and snapshots occupy, shared blocks once."""
        counted = self._counted()
        if counted is not None:
            return sum(counted.values())
        store = self._array.store
        total = sum(self.own_bytes(row) for row in store.select(Volume))
        if self._array.plane.method == "copy":
            total += sum(row.logical_bytes for row in store.select(Snapshot))
        return total

    def logical_bytes(self, *, with_clones: bool) -> int:
        """Return what the volumes would occupy if nothing were shared."""
        return sum(
            self.used_bytes(row)
            for row in self._array.store.select(Volume, phase=LIVE)
            if with_clones or row.parent_uuid is None
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
