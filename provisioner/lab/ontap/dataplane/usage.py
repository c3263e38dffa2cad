"""The space that volumes take, without making a request wait for a long walk."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from provisioner.lab.ontap.dataplane.extents import Ranges, ranges_of, shared_bytes
from provisioner.lab.ontap.dataplane.quotas import (
    bytes_by_subvolume,
    subvolume_generation,
    subvolume_id,
)
from provisioner.lab.ontap.dataplane.trees import measure_tree
from provisioner.lab.ontap.records import LIVE, Snapshot, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_FRESH_SECONDS = 2.0
# A subvolume without files is one node of metadata, of the size that mkfs.btrfs takes.
_EMPTY_TREE_BYTES = 16 << 10
_PATIENCE_SECONDS = 0.05
_BASES_KEPT = 8
# A measure is good for so many times as long as it took.
_FRESH_TIMES = 10


@dataclass(frozen=True)
class _Measured:
    """Bytes that files take; `shared` are those shared with the base snapshot."""

    used: int
    shared: int = 0
    files: int = 0


@dataclass(frozen=True)
class _Known:
    """A measurement: its result, time, duration, and the generation that it saw.

    written: what the kernel counted for the volume before it, None if it counts none.
    """

    measured: _Measured
    at: float
    seconds: float
    generation: int | None
    written: int | None


def shared_inside(volume: Volume) -> int:
    """Return how much the efficiency scanner made the volume's files share."""
    return int(str(volume.efficiency.get("sharing", 0)))


def deduplicated(volume: Volume) -> int:
    """Return how many bytes of duplicates the efficiency scanner found."""
    return int(str(volume.efficiency.get("saved", 0)))


class Usage:
    """Measured sizes of trees.

    A small tree is measured while the request waits, a large one in the background.
    Until that is done the last known size is returned (for a clone: its parent's).
    """

    def __init__(self, array: Array) -> None:
        """Measure the volumes of `array`."""
        self._array = array
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._most_files: dict[str, int] = {}
        self._running: dict[str, tuple[float, Future[_Measured]]] = {}
        self._bases: OrderedDict[str, Ranges] = OrderedDict()
        self._counting = threading.Lock()
        self._counted_at = float("-inf")
        self._last_count: dict[int, int] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ontap-usage")

    def used_bytes(self, volume: Volume) -> int:
        """Return the bytes of the volume's files, plus those given for it."""
        return self.measured_bytes(volume) + volume.said_bytes

    def used_files(self, volume: Volume) -> int:
        """Return the inodes of the volume's files, plus those given for it."""
        return self.measured_files(volume) + volume.said_files

    def taken_bytes(self, volume: Volume) -> int:
        """Return what takes the volume's room at this moment.

        These are its files, what snapshots take beyond their reserve, and what was
        written since the files were measured.

        Source: `df` and `volume show-space` ("Snapshot Spill") of ONTAP.
        """
        used = self.used_bytes(volume)
        with self._lock:
            known = self._known.get(volume.uuid)
        now = self._written(volume)
        if known is None or known.written is None or now is None:
            return used
        used = known.measured.used + volume.said_bytes
        return used + self._spilled(volume, known) + max(0, now - known.written)

    def _spilled(self, volume: Volume, known: _Known) -> int:
        """Return what snapshots held beyond their reserve when files were measured."""
        if known.written is None or not self._has_snapshots(volume):
            return 0
        files = known.measured.used - known.measured.shared - shared_inside(volume)
        empty = _EMPTY_TREE_BYTES if volume.parent_uuid is not None else 0
        reserve = volume.size_bytes * volume.snapshot_reserve_percent // 100
        return max(0, known.written - empty - files - reserve)

    def _written(self, volume: Volume) -> int | None:
        """Return what the kernel counts for the volume now, None if it counts none."""
        if self._array.counters is None:
            return None
        try:
            number = subvolume_id(self._array.volume_path(volume))
            return self._array.counters.written(number)
        except OSError:
            return None  # it is being removed

    def measured_bytes(self, volume: Volume) -> int:
        """Return the bytes of the volume's active files, including shared blocks."""
        return self._measured(volume).used

    def measured_files(self, volume: Volume) -> int:
        """Return how many inodes the volume's active files have."""
        return self._measured(volume).files

    def most_files_seen(self, volume: Volume) -> int:
        """Return the volume's current inode limit, which never shrinks."""
        return max(self.used_files(volume), self._most_files.get(volume.uuid, 0))

    def _measured(self, volume: Volume) -> _Measured:
        with self._lock:
            known = self._known.get(volume.uuid)
        if known is not None and self._is_fresh(known, volume):
            return known.measured
        with self._lock:
            if volume.uuid not in self._running:
                future = self._pool.submit(self._measure, volume)
                self._running[volume.uuid] = (time.monotonic(), future)
            began, running = self._running[volume.uuid]
            is_worth_waiting = len(self._running) == 1 and (
                known is None or known.seconds < _PATIENCE_SECONDS
            )
        patience = began + _PATIENCE_SECONDS - time.monotonic()
        try:
            return running.result(max(0.0, patience) if is_worth_waiting else 0)
        except NotYet:
            if known is not None:
                return known.measured
            inherited = volume.inherited_bytes
            shared = inherited if volume.parent_uuid else 0
            return _Measured(inherited, shared, volume.inherited_files)

    def _is_fresh(self, known: _Known, volume: Volume) -> bool:
        """Return whether the last measurement can still be used.

        A large tree is not measured again and again, and one without a commit since
        then not at all.
        """
        age = time.monotonic() - known.at
        if age < max(_FRESH_SECONDS, known.seconds * _FRESH_TIMES):
            return True
        self._counted()  # what waits is written out, so that a change can be seen
        generation = self._generation(volume)
        return generation is not None and generation == known.generation

    def _generation(self, volume: Volume) -> int | None:
        if self._array.plane.method != "btrfs":
            return None
        try:
            return subvolume_generation(self._array.volume_path(volume))
        except OSError:
            return None  # it is being removed

    def _measure(self, volume: Volume) -> _Measured:
        began, generation = time.monotonic(), self._generation(volume)
        written = self._written(volume)
        try:
            found = self._look_at(volume)
            now = time.monotonic()
            with self._lock:
                self._known[volume.uuid] = _Known(
                    found, now, now - began, generation, written
                )
                most = self._most_files.get(volume.uuid, 0)
                self._most_files[volume.uuid] = max(most, found.files)
        finally:
            with self._lock:
                self._running.pop(volume.uuid, None)
        return found

    def _look_at(self, volume: Volume) -> _Measured:
        path, stopped = self._array.volume_path(volume), self._array.stopping
        used, files = measure_tree(path, stopped=stopped)
        found = _Measured(used, files=files)
        with contextlib.suppress(OSError):  # it is being removed
            base = self._base(volume)
            if base is not None:
                shared = shared_bytes(path, base, stopped=stopped)
                found = replace(found, shared=min(found.used, shared))
        return found

    def _base(self, volume: Volume) -> Ranges | None:
        """Return the path of a clone's base snapshot if it has to be compared."""
        snapshot = self._array.store.find(Snapshot, volume.parent_snapshot_uuid)
        if (
            snapshot is None
            or self._array.plane.method == "copy"
            # Who counts what clones write need not look, but for their snapshots.
            or (self._counted() is not None and not self._has_snapshots(volume))
        ):
            return None
        if snapshot.uuid not in self._bases:
            place = self._array.snapshot_path(snapshot)
            self._bases[snapshot.uuid] = ranges_of(place, stopped=self._array.stopping)
            while len(self._bases) > _BASES_KEPT:
                self._bases.popitem(last=False)
        self._bases.move_to_end(snapshot.uuid)
        return self._bases[snapshot.uuid]

    def own_bytes(self, volume: Volume) -> int:
        """Return the bytes of a volume that it does not share with a parent.

        For a clone, these are its own writes. A volume without a parent owns all its
        files, including those that it had from its parent before a split.
        """
        return self._measured_own_bytes(volume) + volume.said_own_bytes

    def _measured_own_bytes(self, volume: Volume) -> int:
        used = self.measured_bytes(volume)
        if self._array.plane.method == "copy":
            return used
        counted = self._counted()
        if counted is None:
            if volume.parent_uuid is not None:
                return max(0, used - self._measured(volume).shared)
            return max(0, used - shared_inside(volume))
        try:
            written = counted.get(subvolume_id(self._array.volume_path(volume)), 0)
        except OSError:
            return 0  # it is being removed
        if volume.parent_uuid is not None:
            return written
        return max(written, used - shared_inside(volume))

    def inherited_bytes(self, volume: Volume) -> int:
        """Return what a clone shares with its base snapshot; 0 for other volumes.

        The metadata that every clone begins with is its own, but does not reduce this.
        """
        if volume.parent_uuid is None:
            return 0
        own = self.own_bytes(volume)
        if self._counted() is not None:
            own = max(0, own - _EMPTY_TREE_BYTES)
        return max(0, self.used_bytes(volume) - own)

    def _counted(self) -> dict[int, int] | None:
        """Return the bytes by subvolume, or None if the filesystem does not count."""
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

    def _count_again(self) -> None:
        with self._counting:
            self._counted_at = float("-inf")
        self._counted()

    def forget(self, volume_uuid: str) -> None:
        """Drop the measurements of a deleted volume."""
        with self._lock:
            self._known.pop(volume_uuid, None)

    def total_bytes(self) -> int:
        """Return what all volumes and snapshots take, counting shared blocks once."""
        counted = self._counted()
        store = self._array.store
        if counted is not None:
            said = sum(row.said_own_bytes for row in store.select(Volume))
            return sum(counted.values()) + said
        total = sum(self.own_bytes(row) for row in store.select(Volume))
        if self._array.plane.method == "copy":
            total += sum(row.logical_bytes for row in store.select(Snapshot))
        return total

    def bytes_in(self, aggregate: str) -> int:
        """Return what an aggregate's volumes take. The first one has all the rest."""
        config = self._array.config
        if aggregate == config.aggregate:
            return self.total_bytes() - sum(map(self.bytes_in, config.more_aggregates))
        return sum(map(self.own_bytes, self._volumes_in(aggregate)))

    def _volumes_in(self, aggregate: str) -> list[Volume]:
        return [
            row
            for row in self._array.store.select(Volume, phase=LIVE)
            if self._array.aggregate_of(row)["name"] == aggregate
        ]

    def reduction(
        self, aggregate: str, *, with_snapshots: bool = True, with_clones: bool = True
    ) -> tuple[int, int]:
        """Return what an aggregate's volumes and snapshots would take if nothing were
        shared, and what they take. Duplicates that the filesystem cannot share count as
        shared.
        """
        there = self._volumes_in(aggregate)
        volumes = [row for row in there if with_clones or row.parent_uuid is None]
        logical = sum(map(self.used_bytes, volumes))
        physical = sum(map(self._active_bytes, volumes))
        if with_snapshots:
            of_them = {row.uuid for row in there}
            logical += sum(
                row.logical_bytes
                for row in self._array.store.select(Snapshot, phase=LIVE)
                if row.volume_uuid in of_them
            )
            only_found = sum(deduplicated(row) - shared_inside(row) for row in volumes)
            physical = max(physical, self.bytes_in(aggregate) - only_found)
        return logical, min(logical, physical)

    def _active_bytes(self, volume: Volume) -> int:
        """Return what a volume takes without what only its snapshots hold."""
        if volume.parent_uuid is not None:
            return self.own_bytes(volume)
        own = self.measured_bytes(volume) - deduplicated(volume)
        return max(0, own) + volume.said_own_bytes

    def only_in_snapshots_bytes(self, volume: Volume) -> int:
        """Return what the volume takes only for its snapshots."""
        measured = self._measured(volume)
        return self._only_in_snapshots(volume, measured)

    def _only_in_snapshots(self, volume: Volume, measured: _Measured) -> int:
        own = self._measured_own_bytes(volume)
        if volume.parent_uuid is not None:
            if not self._has_snapshots(volume):
                return 0
            own -= _EMPTY_TREE_BYTES
        return max(0, own - (measured.used - measured.shared - shared_inside(volume)))

    def _has_snapshots(self, volume: Volume) -> bool:
        return self._array.store.count(Snapshot, volume_uuid=volume.uuid) > 0

    def look_again(self, volume: Volume) -> tuple[int, int, int]:
        """Measure a volume while the caller waits, with what is not on disk yet.

        Returns the bytes and the inodes of its files, and the bytes that only its
        snapshots hold.
        """
        self._count_again()
        measured = self._pool.submit(self._measure, volume).result()
        self._count_again()
        return (
            measured.used + volume.said_bytes,
            measured.files + volume.said_files,
            self._only_in_snapshots(volume, measured),
        )

    def deduplicated_bytes(self, aggregate: str) -> int:
        """Return how many bytes of duplicates were found inside of its volumes."""
        return sum(map(deduplicated, self._volumes_in(aggregate)))

    def reserved_bytes(self, aggregate: str) -> int:
        """Return what an aggregate's thick volumes reserve beyond what they take."""
        return sum(
            max(0, volume.size_bytes - self.used_bytes(volume))
            for volume in self._volumes_in(aggregate)
            if volume.guarantee == "volume" and volume.state == "online"
        )

    def stop(self) -> None:
        """Stop measuring; the array must be stopping."""
        self._pool.shutdown(wait=True, cancel_futures=True)
