"""SnapMirror transfers: snapshots are copied to the destination with their files.

The relationship's policy decides which ones. After a transfer the destination's files
are those of the last transferred snapshot, and read-only.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.dataplane import btrfs
from provisioner.lab.ontap.dataplane.plane import carry
from provisioner.lab.ontap.dataplane.trees import changed_bytes
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.jobs import Postponed, now_text
from provisioner.lab.ontap.operations import (
    snapshot_directories,
    snapshots,
    volume_changes,
)
from provisioner.lab.ontap.peering import are_peered, cluster_named
from provisioner.lab.ontap.records import (
    LIVE,
    MAKING,
    Destination,
    Relationship,
    SnapmirrorPolicy,
    Snapshot,
    Transfer,
    Volume,
)

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

RUNNING = ("queued", "transferring")
STEPS = 20
_HISTORY_SECONDS = 24 * 3600


class _Aborted(Exception):
    """Somebody aborted the transfer."""


def begin(
    array: Array,
    row: Relationship,
    *,
    kind: str,
    source_snapshot: str | None = None,
    throttle: int = 0,
) -> Transfer:
    """Start a transfer in the background. Raises: OntapError 6619715."""
    with array.store.transaction():
        if running(array, row.uuid):
            raise OntapError("6619715", target="uuid")
        transfer = Transfer(
            str(uuid.uuid4()),
            relationship_uuid=row.uuid,
            type=kind,
            start_time=now_text(),
            source_snapshot=source_snapshot,
            throttle=throttle,
        )
        transfer = replace(transfer, sent_steps=_checkpoint(array, transfer))
        array.store.save(transfer)
        update(array, row.uuid, transfer_uuid=transfer.uuid)
        _forget_old(array, row.uuid)
        job = array.jobs.create(
            "snapmirror_transfer",
            description=f"snapmirror {kind} {row.destination_path}",
            svm_uuid=row.destination_svm_uuid,
            arguments={"transfer_uuid": transfer.uuid},
        )
    array.jobs.start(job)
    return transfer


def _checkpoint(array: Array, transfer: Transfer) -> int:
    """Return how far the last transfer of the same snapshot came, 0 if it is done.

    Source: "snapmirror abort" of the ONTAP command reference: a hard abort discards the
    restart checkpoint, any other one keeps it.
    """
    earlier = [
        each
        for each in array.store.select(
            Transfer, relationship_uuid=transfer.relationship_uuid
        )
        if each.source_snapshot == transfer.source_snapshot
    ]
    last = max(earlier, key=lambda each: each.ended_at or 0, default=None)
    return last.sent_steps if last and last.state in ("aborted", "failed") else 0


def request(
    array: Array,
    row: Relationship,
    source_snapshot: str | None,
    *,
    throttle: int = 0,
) -> Transfer:
    """Start what a client requests: the first transfer, or an update.

    Raises: OntapError 13303844, 6619715.
    """
    if row.state in ("paused", "broken_off"):
        raise OntapError("13303844", reason=f"it is {row.state}")
    if source_snapshot is not None and not _named(array, row, source_snapshot):
        raise OntapError(
            "13303844",
            target="source_snapshot",
            reason=f'the source has no snapshot "{source_snapshot}"',
        )
    kind = "initialize" if row.state == "uninitialized" else "update"
    return begin(
        array, row, kind=kind, source_snapshot=source_snapshot, throttle=throttle
    )


def _named(array: Array, row: Relationship, name: str) -> list[Snapshot]:
    source = cluster_named(array, row.source_cluster)
    return source.store.select(
        Snapshot, volume_uuid=row.source_uuid, name=name, phase=LIVE
    )


def abort(array: Array, transfer: Transfer, *, state: str) -> None:
    """Abort a running transfer. Raises: OntapError 2 if it has ended."""
    with array.store.transaction():
        current = array.store.get(Transfer, transfer.uuid)
        if current.state not in RUNNING:
            raise OntapError("2", target="state", field="state", value=state)
        array.store.save(_ended(current, state=state))


def running(array: Array, relationship_uuid: str) -> bool:
    """Return whether a transfer of the relationship runs or waits."""
    return any(
        array.store.count(Transfer, relationship_uuid=relationship_uuid, state=state)
        for state in RUNNING
    )


def update(array: Array, relationship_uuid: str, **values: Any) -> None:
    """Store changes of a relationship, if it still exists."""
    with array.store.transaction():
        row = array.store.find(Relationship, relationship_uuid)
        if row is not None:
            array.store.save(replace(row, **values))


def mirrored_state(array: Array, row: Relationship) -> str:
    """Return the state of a healthy relationship; it depends on the policy's type."""
    policy = array.store.get(SnapmirrorPolicy, row.policy_uuid)
    return "in_sync" if policy.type == "sync" else "snapmirrored"


def snapshot_prefix(relationship_uuid: str) -> str:
    """Return the prefix of a relationship's own snapshots."""
    return f"snapmirror.{relationship_uuid}_"


def _ended(transfer: Transfer, *, state: str, error: str | None = None) -> Transfer:
    began = datetime.fromisoformat(transfer.start_time)
    return replace(
        transfer,
        state=state,
        error=error,
        end_time=now_text(),
        ended_at=time.time(),
        seconds=int((datetime.now(UTC) - began).total_seconds()),
    )


def _forget_old(array: Array, relationship_uuid: str) -> None:
    limit = time.time() - _HISTORY_SECONDS
    for row in array.store.select(Transfer, relationship_uuid=relationship_uuid):
        if row.ended_at is not None and row.ended_at < limit:
            array.store.remove(row)


# --- the verb


def run(array: Array, arguments: Mapping[str, Any]) -> None:
    """Transfer what the policy selects, and show the result.

    Raises: Postponed when the lab stops; the transfer goes on at the next start.
    """
    transfer = array.store.find(Transfer, arguments["transfer_uuid"])
    if transfer is None or transfer.state not in RUNNING:
        return
    row = array.store.find(Relationship, transfer.relationship_uuid)
    if row is None:
        return
    array.store.save(replace(transfer, state="transferring"))
    try:
        _send(array, row, transfer)
        _carry_all(array, row, transfer)
    except _Aborted:
        return
    except (OntapError, OSError, LookupError) as error:
        code = "13303812" if transfer.type == "initialize" else "13303844"
        reason = OntapError(code, reason=str(error)).message
        with array.store.transaction():
            current = array.store.get(Transfer, transfer.uuid)
            if current.state in RUNNING:
                array.store.save(_ended(current, state="failed", error=reason))
            update(array, row.uuid, healthy=False, unhealthy_reason=reason)


def _send(array: Array, row: Relationship, transfer: Transfer) -> None:
    """Wait for the time in the settings, and no less than the throttle asks for.

    A throttle is in kilobytes per second.

    Raises: Postponed, OntapError 13303939.
    """
    seconds, throttle = array.settings.transfer_seconds, transfer.throttle
    throttle = throttle or row.throttle
    if not (seconds or throttle):
        return
    ahead = _bytes_ahead(array, row, transfer)
    if throttle:
        seconds = max(seconds, ahead / (throttle << 10))
    for step in range(transfer.sent_steps, STEPS if seconds else 0):
        if array.stopping.wait(seconds / STEPS):
            raise Postponed
        _check_wanted(array, transfer)
        _check_peered(array, row)
        with array.store.transaction():
            current = array.store.get(Transfer, transfer.uuid)
            if current.state in RUNNING:
                sent = ahead * (step + 1 - transfer.sent_steps) // STEPS
                array.store.save(
                    replace(current, sent_steps=step + 1, bytes_transferred=sent)
                )


def _bytes_ahead(array: Array, row: Relationship, transfer: Transfer) -> int:
    """Return what a transfer has to send, the relationship's own snapshot aside."""
    source = cluster_named(array, row.source_cluster)
    volume = source.store.get(Volume, row.source_uuid)
    policy = array.store.get(SnapmirrorPolicy, row.policy_uuid)
    named = transfer.source_snapshot
    wanted = _named(array, row, named) if named else _wanted(source, policy, row)
    arrived = {each.version_uuid for each in _snapshots_there(array, row)}
    base, ahead = None, 0
    for each in snapshot_directories.snapshots_of(source, volume):
        if each.version_uuid in arrived:
            base = source.snapshot_path(each)
    for each in wanted:
        if each.version_uuid not in arrived:
            path = source.snapshot_path(each)
            ahead += changed_bytes(path, base=base)
            base = path
    return ahead


def _check_wanted(array: Array, transfer: Transfer) -> None:
    current = array.store.find(Transfer, transfer.uuid)
    if current is None or current.state not in RUNNING:
        raise _Aborted


def _check_peered(array: Array, row: Relationship) -> None:
    """Refuse while the peering of the two SVMs is suspended or gone."""
    ends = {"svm_uuid": row.destination_svm_uuid, "peer_svm_uuid": row.source_svm_uuid}
    if not are_peered(array, **ends):
        raise OntapError(
            "13303939",
            svm=row.destination_path.partition(":")[0],
            peer=row.source_path.partition(":")[0],
        )


def _carry_all(array: Array, row: Relationship, transfer: Transfer) -> None:
    _check_peered(array, row)
    source = cluster_named(array, row.source_cluster)
    policy = array.store.get(SnapmirrorPolicy, row.policy_uuid)
    volume = source.store.get(Volume, row.source_uuid)
    if transfer.source_snapshot is not None:
        wanted = _named(array, row, transfer.source_snapshot)
    else:
        if policy.create_snapshot_on_source:
            _take_base(source, row, volume)
        wanted = _wanted(source, policy, row)
    with array.busy(row.destination_uuid):
        if transfer.type == "resync":
            common = _resync(array, row, source=source, original=volume)
            wanted = [s for s in wanted if s.create_time >= common.create_time]
        carried = 0
        for snapshot in wanted:
            _check_wanted(array, transfer)
            carried += _carry(array, row, source=source, snapshot=snapshot)
        if transfer.source_snapshot is None:
            _follow_deletions(array, row, policy, wanted)
        _retain(array, row, policy)
        last = _show_latest(array, row, volume, wanted)
        if wanted:
            _release_base(source, row, keep=wanted[-1])
        _finish(array, row, transfer, carried=carried, last=last)


def _resync(
    array: Array, row: Relationship, *, source: Array, original: Volume
) -> Snapshot:
    """Make the destination read-only again, as of the newest common snapshot.

    Raises: OntapError 13303844 if there is none, 1638555 if a clone needs a later one.
    Source: "snapmirror resync" of the ONTAP command reference: removes snapshots on the
    destination that are newer than the common one.
    """
    volume = array.store.get(Volume, row.destination_uuid)
    common = common_snapshot(array, volume, source=source, original=original)
    if common is None:
        raise OntapError("13303844", reason="there is no common snapshot")
    there = snapshot_directories.snapshots_of(array, volume)
    there.sort(key=lambda each: each.create_time)  # of one second: as they were taken
    later = there[there.index(common) + 1 :]
    for each in later:
        if array.store.count(Volume, parent_snapshot_uuid=each.uuid):
            svm = row.destination_path.partition(":")[0]
            raise OntapError("1638555", snapshot=each.name, volume=volume.name, svm=svm)
    for each in later:
        snapshots.drop(array, each)
    _retype(array, row.destination_uuid, "dp")
    volume_changes.put_image(array, array.store.get(Volume, volume.uuid), common)
    return common


def _take_base(source: Array, row: Relationship, volume: Volume) -> None:
    """Take the relationship's own snapshot of the source."""
    for half in source.store.select(Snapshot, volume_uuid=volume.uuid, phase=MAKING):
        if half.name.startswith(snapshot_prefix(row.uuid)):
            snapshots.drop(source, half)  # a transfer was cut off
    stamp = datetime.now(UTC).strftime("%Y-%m-%d_%H%M%S%f")
    with source.store.transaction():
        snapshot = snapshots.plan(
            source, volume, name=f"{snapshot_prefix(row.uuid)}.{stamp}"
        )
    snapshots.make(source, {"snapshot_uuid": snapshot.uuid})


def _wanted(
    source: Array, policy: SnapmirrorPolicy, row: Relationship
) -> list[Snapshot]:
    """Return the source's snapshots that the policy selects, oldest first."""
    found = source.store.select(Snapshot, volume_uuid=row.source_uuid, phase=LIVE)
    own = [s for s in found if s.name.startswith(snapshot_prefix(row.uuid))][-1:]
    others = [s for s in found if not s.name.startswith("snapmirror.")]
    if not policy.copy_all_source_snapshots:
        labels = {rule.get("label") for rule in policy.retention}
        labeled = [s for s in others if s.snapmirror_label in labels]
        others = others[-1:] if policy.copy_latest_source_snapshot else labeled
    return [*others, *own]


def _carry(
    array: Array, row: Relationship, *, source: Array, snapshot: Snapshot
) -> int:
    """Copy one snapshot unless it is there; return the bytes that were new."""
    there = _snapshots_there(array, row)
    for known in there:
        if known.version_uuid == snapshot.version_uuid:
            if known.volume_uuid == row.destination_uuid:
                _follow(array, known, snapshot)
            return 0
    for half in array.store.select(
        Snapshot, volume_uuid=row.destination_uuid, phase=MAKING
    ):
        is_own = half.name.startswith(snapshot_prefix(row.uuid))
        if is_own or half.version_uuid == snapshot.version_uuid:
            snapshots.drop(array, half)  # a transfer was cut off
    arrived = replace(
        snapshot,
        uuid=str(uuid.uuid4()),
        volume_uuid=row.destination_uuid,
        phase=MAKING,
    )
    array.store.save(arrived)
    path, target = source.snapshot_path(snapshot), array.snapshot_path(arrived)
    try:
        carry(array.plane, path, target=target)
        base = array.snapshot_path(there[-1]) if there else None
        new_bytes = changed_bytes(target, base=base)
    except OSError:
        snapshots.drop(array, arrived)
        raise
    array.store.save(replace(arrived, phase=LIVE))
    return new_bytes


def _snapshots_there(array: Array, row: Relationship) -> list[Snapshot]:
    volume = array.store.get(Volume, row.destination_uuid)
    return snapshot_directories.snapshots_of(array, volume)


def common_snapshot(
    array: Array, there: Volume, *, source: Array, original: Volume
) -> Snapshot | None:
    """Return the newest snapshot of a volume that its source has as well.

    Source: replication.resync.cmnSnpCnt in the ONTAP EMS reference.
    """
    versions = {
        each.version_uuid
        for each in snapshot_directories.snapshots_of(source, original)
    }
    rows = snapshot_directories.snapshots_of(array, there)
    common = [each for each in rows if each.version_uuid in versions]
    return common[-1] if common else None


def _follow(array: Array, known: Snapshot, snapshot: Snapshot) -> None:
    """Update a transferred snapshot to its original's current name and comment."""
    changed = replace(
        known,
        name=snapshot.name,
        comment=snapshot.comment,
        snapmirror_label=snapshot.snapmirror_label,
    )
    if changed != known:
        array.store.save(changed)


def _follow_deletions(
    array: Array,
    row: Relationship,
    policy: SnapmirrorPolicy,
    wanted: Iterable[Snapshot],
) -> None:
    """Drop snapshots that a mirror's source no longer has, unless they are cloned."""
    versions = {snapshot.version_uuid for snapshot in wanted}
    there = array.store.select(Snapshot, volume_uuid=row.destination_uuid, phase=LIVE)
    for snapshot in there:
        own = snapshot.name.startswith("snapmirror.")
        if snapshot.version_uuid in versions or snapshots.owners_of(array, snapshot):
            continue
        if policy.copy_all_source_snapshots or own:
            snapshots.drop(array, snapshot)


def _retain(array: Array, row: Relationship, policy: SnapmirrorPolicy) -> None:
    """Drop the oldest snapshots beyond a vault's count, unless a clone needs them.

    Source: "snapmirror policy modify-rule": with the next transfer by the snapmirror
    update command.
    """
    if policy.copy_all_source_snapshots:
        return
    for rule in policy.retention:
        count = int(str(rule.get("count", 1)))
        labeled = [
            s
            for s in array.store.select(
                Snapshot, volume_uuid=row.destination_uuid, phase=LIVE
            )
            if s.snapmirror_label == rule.get("label")
        ]
        for snapshot in labeled[: max(0, len(labeled) - count)]:
            if not snapshots.owners_of(array, snapshot):
                snapshots.drop(array, snapshot)


def _show_latest(
    array: Array, row: Relationship, original: Volume, wanted: list[Snapshot]
) -> Snapshot | None:
    """Make the destination's files those of the last transferred snapshot."""
    if not wanted:
        return None
    (last,) = (
        snapshot
        for snapshot in array.store.select(
            Snapshot, volume_uuid=row.destination_uuid, phase=LIVE
        )
        if snapshot.version_uuid == wanted[-1].version_uuid
    )
    with array.store.transaction():
        volume = replace(
            array.store.get(Volume, row.destination_uuid),
            size_bytes=original.size_bytes,
            uid=original.uid,
            gid=original.gid,
            unix_permissions=original.unix_permissions,
        )
        array.store.save(volume)
    volume_changes.put_image(array, volume, last)
    if array.plane.method == "btrfs":
        btrfs.set_read_only(array.volume_path(volume))
    return last


def _finish(
    array: Array,
    row: Relationship,
    transfer: Transfer,
    *,
    carried: int,
    last: Snapshot | None,
) -> None:
    with array.store.transaction():
        current = array.store.get(Transfer, transfer.uuid)
        array.store.save(
            replace(_ended(current, state="success"), bytes_transferred=carried)
        )
        now = array.store.get(Relationship, row.uuid)
        array.store.save(
            replace(
                now,
                state=mirrored_state(array, now),
                healthy=True,
                unhealthy_reason=None,
                exported_snapshot=last.name if last else now.exported_snapshot,
                exported_time=last.create_time if last else now.exported_time,
                total_transfer_bytes=now.total_transfer_bytes + carried,
                last_transfer_type=transfer.type,
            )
        )


def _release_base(source: Array, row: Relationship, *, keep: Snapshot) -> None:
    """Keep the snapshot that the next transfer starts from, and drop older ones."""
    with source.store.transaction():
        known = source.store.find(Destination, row.uuid)
        if known is not None:
            source.store.save(replace(known, base_snapshot_uuid=keep.uuid))
    prefix = snapshot_prefix(row.uuid)
    for snapshot in source.store.select(
        Snapshot, volume_uuid=row.source_uuid, phase=LIVE
    ):
        is_older = snapshot.name.startswith(prefix) and snapshot.uuid != keep.uuid
        if is_older and not snapshots.owners_of(source, snapshot):
            snapshots.drop(source, snapshot)


# --- read-only or not


def make_writable(array: Array, volume_uuid: str) -> None:
    """Make a destination writable."""
    _retype(array, volume_uuid, "rw")
    volume = array.store.get(Volume, volume_uuid)
    if array.plane.method == "btrfs":
        btrfs.set_writable(array.volume_path(volume))
    snapshot_directories.refresh(array, volume_uuid)


def _retype(array: Array, volume_uuid: str, kind: str) -> None:
    with array.store.transaction():
        volume = array.store.get(Volume, volume_uuid)
        array.store.save(replace(volume, type=kind))
