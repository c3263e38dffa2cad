"""Every verb that a job can run, by the name stored with the job."""

from __future__ import annotations

from collections.abc import Mapping

from provisioner.lab.ontap.jobs import Verb
from provisioner.lab.ontap.operations import snapshots, volume_changes, volumes

VERBS: Mapping[str, Verb] = {
    "volume_make": volumes.make,
    "volume_clone": volumes.make_clone,
    "volume_change": volume_changes.apply,
    "volume_delete": volumes.destroy,
    "snapshot_make": snapshots.make,
    "snapshot_change": snapshots.change,
    "snapshot_delete": snapshots.destroy,
}
