"""The moment that is copied: a snapshot of every volume.

At one moment where ONTAP has consistency groups, else in the order database, journal,
archives.

Source: "Backup procedures" of the Helix Core administrator's guide; consistency groups
of the ONTAP REST reference.
"""

from __future__ import annotations

import datetime as dt

from provisioner.catalog.steps.volumes import limits_in_our_words
from provisioner.gateways.errors import AlreadyExists, NotFound, Refused
from provisioner.gateways.ontap.types import ConsistencyGroup, Volume, VolumeSnapshot
from provisioner.lib import clocks
from provisioner.lib.refusals import StepRefused
from provisioner.sandboxes.models import Sandbox, SandboxVolume
from provisioner.sandboxes.steps.run import SandboxRun

NEVER = dt.datetime.min.replace(tzinfo=dt.UTC)


def ensure_point(run: SandboxRun) -> None:
    """Ensure a snapshot of each volume, and record how consistent they are.

    Of volumes that SnapMirror fills, none is taken: the newest that all have is found.

    Raises: StepRefused (a volume is not there).
    """
    uuids = {row.source: _volume(run, row.source).uuid for row in run.volumes}
    if any(row.is_replica for row in run.volumes):
        _choose_replicated(run, uuids)
        return
    group = _group(run) if len(uuids) > 1 else None
    name, comment = run.sandbox.snapshot_name, run.sandbox.volume_comment
    if group is not None:
        _take_of_group(run, group)
        kind = Sandbox.Consistency.GROUP
    elif len(uuids) == 1:
        kind = Sandbox.Consistency.ONE
    else:
        kind = Sandbox.Consistency.ORDERED
    found: dict[str, VolumeSnapshot] = {}
    for source, uuid in uuids.items():
        snapshot = run.ontap.find_snapshot(uuid, name=name)
        if snapshot is None:
            with limits_in_our_words():
                snapshot = run.ontap.create_snapshot(uuid, name=name, comment=comment)
        found[source] = snapshot
    with run.writing():
        for row in run.volumes:
            SandboxVolume.objects.filter(pk=row.pk).update(
                snapshot_uuid=found[row.source].uuid
            )
        Sandbox.with_retired.filter(pk=run.sandbox.pk).update(
            consistency=kind,
            taken_at=found[run.volumes[0].source].created_at or clocks.database_now(),
        )


def _choose_replicated(run: SandboxRun, uuids: dict[str, str]) -> None:
    """Choose the newest snapshots that came to all volumes under one name.

    Once chosen they stay chosen, so that a retry clones the same moment.

    Raises: StepRefused (no such snapshots).
    """
    snapshots = {
        source: {each.name: each for each in run.ontap.list_snapshots(uuid)}
        for source, uuid in uuids.items()
    }
    names = set.intersection(*(set(found) for found in snapshots.values()))
    names = {row.replicated for row in run.volumes} & names or names
    moments = {
        name: min(found[name].created_at or NEVER for found in snapshots.values())
        for name in names
    }
    if not moments:
        raise StepRefused(
            f"{', '.join(uuids)} have no snapshot of one name, so no moment is in all "
            "of them. Nothing was cloned. Take the snapshots of the server's volumes "
            "as a consistency group, or by one snapshot policy, and replicate them.",
            code="replicas_apart",
        )
    newest = max(moments, key=lambda name: (moments[name], name))
    is_one = len(uuids) == 1
    kinds = Sandbox.Consistency
    with run.writing():
        for row in run.volumes:
            SandboxVolume.objects.filter(pk=row.pk).update(
                replicated=newest, snapshot_uuid=snapshots[row.source][newest].uuid
            )
        Sandbox.with_retired.filter(pk=run.sandbox.pk).update(
            consistency=kinds.ONE if is_one else kinds.REPLICATED,
            taken_at=moments[newest],
        )


def _volume(run: SandboxRun, name: str) -> Volume:
    volume = run.ontap.find_volume(name)
    if volume is None:
        raise StepRefused(
            f"There is no volume {name} on {run.site.svm}. Nothing was cloned. Correct "
            f"the volumes of {run.server.name}.",
            code="volume_missing",
        )
    return volume


def _group(run: SandboxRun) -> ConsistencyGroup | None:
    """Return the group that has just these volumes, or a new one.

    None where ONTAP has no groups, our account may not use them, or somebody else's
    group has some of the volumes.
    """
    wanted = [row.source for row in run.volumes]
    try:
        groups = run.ontap.list_groups()
        for group in groups:
            if set(wanted) <= set(group.volumes):
                return group
        if any(set(wanted) & set(group.volumes) for group in groups):
            return None
        return run.ontap.create_group(run.sandbox.group_name, volumes=wanted)
    except (NotFound, Refused, AlreadyExists):
        return None


def _take_of_group(run: SandboxRun, group: ConsistencyGroup) -> None:
    name = run.sandbox.snapshot_name
    if run.ontap.find_group_snapshot(group.uuid, name=name) is None:
        with limits_in_our_words():
            run.ontap.create_group_snapshot(
                group.uuid, name=name, comment=run.sandbox.volume_comment
            )
