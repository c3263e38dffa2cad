"""Hold volumes to their sizes, inodes and quotas; let those with autosize grow.

The kernel refuses what a volume's subvolume would write beyond its limit, so every
program on a host meets it at its own write. Nothing walks a tree for that: the limit
counts what the subvolume wrote, and is corrected by a walk only once a volume is
nearly full, as what a clone inherits and what snapshots hold change meanwhile.

btrfs counts bytes, and by subvolume alone. So a volume that has all its inodes takes no
byte more, from a walk that finds them used up until one that does not; and a quota
holds the whole volume to what it leaves its owner, which is true where one owner writes
to it. Both are found within seconds, so a fast writer is beyond them by then. Whatever
is used up, the kernel says EDQUOT: what it is, `space` and `files` of the volume and
the quota reports say.

Source: `volume autosize` of the ONTAP command reference; "Configure volumes to
automatically grow and shrink their size" and "Manage the snapshot copy reserve"
(docs.netapp.com/us-en/ontap): what snapshots take beyond the reserve takes the room of
files. By how much a volume grows is not documented. "Determine file and inode usage for
a volume" and "Overview of the quota process".
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from provisioner.lab.ontap.dataplane import quotas
from provisioner.lab.ontap.operations import limits, quota_rules
from provisioner.lab.ontap.records import LIVE, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_NEARLY_FULL_PERCENT = 85
_GROWS_BY_PERCENT = 5
# What may be written during a walk that still counts.
_MEANWHILE_BYTES = 64 << 10
_INODES_BEFORE_FIRST = 255  # the root directory has number 256
# A large tree is not walked again and again.
_REST_TIMES = 10


_NEVER = (-1, -1, -1)


@dataclass(frozen=True)
class _Held:
    """What is known of a volume.

    subvolume: its id. elsewhere: what takes its room and is not counted by the kernel
    as written by it; negative where the kernel counts more than takes room. ceiling:
    what may be written for the sake of inodes and quotas, None if these hold nothing.
    seen: what was written when it was walked, the last commit that changed it, and its
    highest inode.
    """

    subvolume: int
    elsewhere: int
    ceiling: int | None = None
    seen: tuple[int, int, int] = _NEVER
    walk_at: float = 0.0


class Sizes:
    """The sizes of an array's volumes, in the kernel."""

    def __init__(self, array: Array) -> None:
        """Nothing is held until a volume appears or is checked."""
        self._array = array
        self._held: dict[str, _Held] = {}
        self._counters = array.counters
        # The highest inode that was seen in a subvolume, by its id.
        self._inodes: dict[int, int] = {}
        # A changed size is followed while a check may be walking.
        self._holding = threading.Lock()

    def begin(self, volume: Volume) -> None:
        """Hold a new volume, or a clone, of which only metadata was written so far."""
        if self._counters is None or not _is_held(volume):
            return
        with contextlib.suppress(OSError):
            number = quotas.subvolume_id(self._array.volume_path(volume))
            written = self._counters.written(number)
            inherited = volume.inherited_bytes if volume.parent_uuid else 0
            elsewhere = inherited + volume.said_bytes - written
            self._hold(volume, _Held(number, elsewhere))

    def forget(self, volume_uuid: str) -> None:
        """Measure the volume again: its files were replaced, or it is gone."""
        self._held.pop(volume_uuid, None)

    def follow(self, volume_uuid: str) -> None:
        """Let the limit follow a changed size, reserve, inode limit or quota."""
        volume = self._array.store.find(Volume, volume_uuid)
        held = self._held.get(volume_uuid)
        if volume is not None and held is not None and _is_held(volume):
            with contextlib.suppress(OSError):
                again = replace(held, ceiling=None, seen=_NEVER, walk_at=0.0)
                if quota_rules.are_on(volume):
                    again = self._walked(volume, held.subvolume)
                self._hold(volume, again)

    def check(self) -> None:
        """Hold what is not held yet, correct nearly full volumes, and autosize."""
        if self._counters is None:
            return
        for volume in self._array.store.select(Volume, phase=LIVE):
            if self._array.stopping.is_set():
                return
            # It is being removed or replaced.
            with contextlib.suppress(OSError, LookupError):
                self._check(volume.uuid)

    def _check(self, volume_uuid: str) -> None:
        assert self._counters is not None
        held = self._held.get(volume_uuid)
        # Read after what is held: whatever changes from here on is held anew.
        volume = self._array.store.get(Volume, volume_uuid)
        if volume.phase != LIVE or not _is_held(volume):
            return
        number = quotas.subvolume_id(self._array.volume_path(volume))
        if held is None or held.subvolume != number:
            held = self._remembered(volume, number) or self._walked(volume, number)
            self._hold(volume, held)
            # Nothing followed a size that changed before it was held.
            volume = self._array.store.get(Volume, volume_uuid)
            self._hold(volume, held, unless_followed_since=held)
        used = self._counters.written(number) + held.elsewhere
        is_at_bounds = _wanted_size(self._array, volume, used=used) == volume.size_bytes
        room = _room_of(volume, volume.size_bytes)
        if (
            is_at_bounds
            and 100 * used < _NEARLY_FULL_PERCENT * room
            and not self._may_be_at_ceiling(volume, held)
        ):
            return
        if self._seen(volume, number) == held.seen or time.monotonic() < held.walk_at:
            return
        walked = self._walked(volume, number)
        if self._counters.written(number) > walked.seen[0] + _MEANWHILE_BYTES:
            # What the walk saw fits nothing that was counted; it is walked again. No
            # ceiling is higher than it should be: not one that counts a write twice,
            # nor an older one, which does not know what was deleted since.
            ceiling = walked.ceiling
            if ceiling is not None and held.ceiling is not None:
                ceiling = max(ceiling, held.ceiling)
            walked = replace(held, walk_at=walked.walk_at, ceiling=ceiling)
        used = self._counters.written(number) + walked.elsewhere
        size = _wanted_size(self._array, volume, used=used)
        if size != volume.size_bytes:
            volume = self._resize(volume, size)
        self._hold(volume, walked, unless_followed_since=held)

    def _may_be_at_ceiling(self, volume: Volume, held: _Held) -> bool:
        """Return whether inodes or a quota may be used up; costs no walk."""
        if held.ceiling is not None or quota_rules.are_on(volume):
            return True
        most = self._highest_inode(volume, held.subvolume) - _INODES_BEFORE_FIRST
        return 100 * most >= _NEARLY_FULL_PERCENT * limits.most_files(volume)

    def _highest_inode(self, volume: Volume, number: int) -> int:
        path = self._array.volume_path(volume)
        known = self._inodes.get(number, _INODES_BEFORE_FIRST + 1)
        self._inodes[number] = quotas.highest_inode(path, known=known)
        return self._inodes[number]

    def _ceiling(self, volume: Volume, *, files: int, written: int) -> int | None:
        """Return how much may have been written, by inodes and quotas; None: any."""
        left: list[int] = []
        if files >= limits.most_files(volume):
            left.append(0)
        for use in quota_rules.uses(self._array, volume):
            space, inodes = use.left_of("space"), use.left_of("files")
            left += [0] if inodes == 0 else []
            left += [] if space is None else [space]
        return written + min(left) if left else None

    def _seen(self, volume: Volume, number: int) -> tuple[int, int, int]:
        assert self._counters is not None
        path = self._array.volume_path(volume)
        return (
            self._counters.written(number),
            quotas.subvolume_generation(path),
            self._highest_inode(volume, number),
        )

    def _remembered(self, volume: Volume, number: int) -> _Held | None:
        """Return what the limit says that an earlier run of the lab has set."""
        assert self._counters is not None
        limit = self._counters.limit(number)
        if limit is None:
            return None
        most = _room_of(volume, self._most_bytes(volume))
        return _Held(number, most - limit)

    def _walked(self, volume: Volume, number: int) -> _Held:
        """Return what is known after a walk through the volume's files."""
        assert self._counters is not None
        began, seen = time.monotonic(), self._seen(volume, number)
        used, files, in_snapshots = self._array.usage.look_again(volume)
        reserve = volume.size_bytes - _room_of(volume, volume.size_bytes)
        spilled = max(0, in_snapshots - reserve)
        ended, written = time.monotonic(), seen[0]
        return _Held(
            number,
            used + spilled - written,
            ceiling=self._ceiling(volume, files=files, written=written),
            seen=seen,
            walk_at=ended + (ended - began) * _REST_TIMES,
        )

    def _hold(
        self,
        volume: Volume,
        held: _Held,
        *,
        unless_followed_since: _Held | None = None,
    ) -> None:
        """Set the limit, unless something else was held since a walk began."""
        most = _room_of(volume, self._most_bytes(volume)) - held.elsewhere
        if held.ceiling is not None:
            most = min(most, held.ceiling)
        with self._holding:
            known = self._held.get(volume.uuid)
            if unless_followed_since is not None and known is not unless_followed_since:
                return
            quotas.set_limit(
                self._array.root / "data", subvolume=held.subvolume, size=max(1, most)
            )
            self._held[volume.uuid] = held

    def _most_bytes(self, volume: Volume) -> int:
        """Return how large the volume may become before a write is refused."""
        settings = limits.autosize_of(self._array, volume)
        if settings["autosize.mode"] == "off":
            return volume.size_bytes
        return max(volume.size_bytes, int(settings["autosize.maximum"]))

    def _resize(self, volume: Volume, size: int) -> Volume:
        """Save the size, with the bounds that were in force at the old one."""
        settings = limits.autosize_of(self._array, volume)
        bounds = ("autosize.maximum", "autosize.minimum")
        with self._array.store.transaction():
            now = self._array.store.get(Volume, volume.uuid)
            if now.size_bytes != volume.size_bytes:
                return now  # somebody else was faster
            kept = {**now.remembered, **{name: settings[name] for name in bounds}}
            resized = replace(now, size_bytes=size, remembered=kept)
            self._array.store.save(resized)
        self._array.log.info(
            "volume %s: autosize from %s to %s bytes",
            volume.name,
            volume.size_bytes,
            size,
        )
        return resized


def _is_held(volume: Volume) -> bool:
    """Return whether clients write to it; ONTAP sizes mirrors by their sources."""
    return volume.type == "rw" and volume.state == "online"


def _available(array: Array, volume: Volume) -> int:
    return array.aggregate_bytes(volume.aggregate)[1]


def _room_of(volume: Volume, size: int) -> int:
    return size - size * volume.snapshot_reserve_percent // 100


def _wanted_size(array: Array, volume: Volume, *, used: int) -> int:
    """Return the size that autosize gives a volume, or the one that it has."""
    settings = limits.autosize_of(array, volume)
    mode, size = settings["autosize.mode"], volume.size_bytes
    room = max(1, _room_of(volume, size))
    upper, lower = (
        int(settings["autosize.grow_threshold"]),
        int(settings["autosize.shrink_threshold"]),
    )
    share = 100 - volume.snapshot_reserve_percent  # of the size, for files

    def size_at(percent: int) -> int:
        return used * 10_000 // (max(1, percent) * share) + 1

    if mode != "off" and 100 * used > upper * room:
        least = size + size * _GROWS_BY_PERCENT // 100
        size = min(max(least, size_at(upper)), int(settings["autosize.maximum"]))
        size = max(size, volume.size_bytes)
        growth = size - volume.size_bytes
        if volume.guarantee == "volume" and _available(array, volume) < growth:
            return volume.size_bytes
    elif mode == "grow_shrink" and 100 * used < lower * room:
        least = max(
            int(settings["autosize.minimum"]), limits.least_bytes_for_files(volume)
        )
        size = min(size, max(size_at((upper + lower) // 2), least))
    return size
