"""Take the snapshots that policies ask for, and begin transfers, by the array's clock.

The clock may be moved ahead by a setting. What became due meanwhile is taken once for
each schedule, as its last moment says. More than a policy keeps goes, oldest first; a
snapshot that something holds stays.

Source: data-protection/configure-custom-snapshot-policies-concept and
create-snapshot-policy-task of NetAppDocs/ontap (the times, names such as
“hourly.2017-05-15_1106”, the oldest go); the endpoint overview of
``/storage/snapshot-policies`` in the ONTAP REST reference (a count per schedule);
`transfer_schedule` of relationships and SnapMirror policies there: the relationship's
own goes before its policy's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.operations import snapshots, transfers
from provisioner.lab.ontap.records import (
    LIVE,
    Relationship,
    SnapmirrorPolicy,
    Snapshot,
    SnapshotPolicy,
    Volume,
)

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


def _every(minutes: int, *, past: int = 0) -> Callable[[datetime], datetime]:
    step = timedelta(minutes=minutes)

    def last_before(at: datetime) -> datetime:
        midnight = at.replace(hour=0, minute=past % 60, second=0, microsecond=0)
        midnight += timedelta(hours=past // 60) - timedelta(days=1)
        return midnight + (at - midnight) // step * step

    return last_before


def _weekly(at: datetime) -> datetime:
    sunday = at - timedelta(days=(at.weekday() + 1) % 7)
    moment = sunday.replace(hour=0, minute=15, second=0, microsecond=0)
    return moment if moment <= at else moment - timedelta(days=7)


def _monthly(at: datetime) -> datetime:
    moment = at.replace(day=1, hour=0, minute=20, second=0, microsecond=0)
    if moment <= at:
        return moment
    return (moment - timedelta(days=1)).replace(day=1)


_LAST_MOMENT: Mapping[str, Callable[[datetime], datetime]] = {
    "5min": _every(5),
    "10min": _every(10),
    "hourly": _every(60, past=5),
    "8hour": _every(8 * 60, past=135),
    "daily": _every(24 * 60, past=10),
    "weekly": _weekly,
    "monthly": _monthly,
}


class Clock:
    """The array's clock, and up to when its schedules ran."""

    def __init__(self, array: Array) -> None:
        """Begin now: what was due while the array was off is not taken."""
        self._array = array
        self._ran_until = self.now()

    def now(self) -> datetime:
        ahead = timedelta(seconds=self._array.settings.clock_ahead_seconds)
        return datetime.now(UTC) + ahead

    def run_schedules(self) -> None:
        """Take what became due since the last call."""
        since, self._ran_until = self._ran_until, self.now()
        for policy in self._array.store.select(SnapshotPolicy):
            if not policy.enabled:
                continue
            for entry in policy.copies:
                moment = _LAST_MOMENT[str(entry["schedule"])](self._ran_until)
                if moment > since:
                    for volume in _volumes_of(self._array, policy):
                        with contextlib.suppress(OntapError):  # full, splitting, …
                            _take(self._array, volume, entry, moment)
        for row in self._array.store.select(Relationship):
            self._transfer(row, since=since)

    def _transfer(self, row: Relationship, *, since: datetime) -> None:
        """Begin a transfer of a relationship whose schedule came due."""
        policy = self._array.store.get(SnapmirrorPolicy, row.policy_uuid)
        name = row.transfer_schedule or policy.transfer_schedule
        if not name or row.state == "uninitialized":
            return
        if _LAST_MOMENT[name](self._ran_until) > since:
            with contextlib.suppress(OntapError):  # paused, broken off, running
                transfers.request(self._array, row, None)


def _volumes_of(array: Array, policy: SnapshotPolicy) -> Iterator[Volume]:
    for volume in array.store.select(Volume, phase=LIVE):
        if (
            volume.snapshot_policy == policy.name
            and policy.svm_uuid in (None, volume.svm_uuid)
            and volume.type == "rw"
            and not volume.is_svm_root
        ):
            yield volume


def _take(
    array: Array, volume: Volume, entry: Mapping[str, object], moment: datetime
) -> None:
    prefix = f"{entry['prefix']}."
    fields = {
        "create_time": moment.isoformat(timespec="seconds"),
        "snapmirror_label": entry.get("snapmirror_label"),
    }
    name = f"{prefix}{moment:%Y-%m-%d_%H%M}"
    with array.store.transaction():
        snapshot = snapshots.plan(array, volume, name=name, fields=fields)
    snapshots.make(array, {"snapshot_uuid": snapshot.uuid})
    taken = [
        row
        for row in array.store.select(Snapshot, volume_uuid=volume.uuid, phase=LIVE)
        if row.name.startswith(prefix)
    ]
    taken.sort(key=lambda row: row.create_time, reverse=True)
    for row in taken[int(str(entry["count"])) :]:
        if not snapshots.owners_of(array, row):
            snapshots.drop(array, row)
