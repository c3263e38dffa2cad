"""Every verb that a job can run, by its stored name."""

from __future__ import annotations

from collections.abc import Mapping

from provisioner.lab.ontap.jobs import Verb
from provisioner.lab.ontap.operations import (
    consistency_groups,
    efficiency,
    moves,
    snapmirror,
    snapshots,
    splits,
    transfers,
    volume_changes,
    volumes,
)

VERBS: Mapping[str, Verb] = {
    "nothing": Verb(lambda array, arguments: None),
    "volume_make": Verb(volumes.make, abandon=volumes.abandon),
    "volume_clone": Verb(volumes.make_clone, abandon=volumes.abandon),
    "volume_change": Verb(volume_changes.apply),
    "volume_split": Verb(splits.run),
    "volume_move": Verb(moves.run),
    "volume_delete": Verb(volumes.destroy),
    "snapshot_make": Verb(snapshots.make, abandon=snapshots.abandon),
    "snapshot_change": Verb(snapshots.change),
    "snapshot_delete": Verb(snapshots.destroy),
    "group_snapshot_make": Verb(
        consistency_groups.make, abandon=consistency_groups.abandon
    ),
    "group_snapshot_delete": Verb(consistency_groups.destroy),
    "efficiency_scan": Verb(efficiency.run),
    "snapmirror_create": Verb(snapmirror.make, abandon=snapmirror.abandon),
    "snapmirror_change": Verb(snapmirror.change),
    "snapmirror_delete": Verb(snapmirror.destroy),
    "snapmirror_transfer": Verb(transfers.run),
}
