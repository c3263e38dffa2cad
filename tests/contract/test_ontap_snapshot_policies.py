"""Snapshots that ONTAP takes by a policy, on the lab, with the least rights."""

from __future__ import annotations

import pytest

from provisioner.gateways.errors import AlreadyExists, NotFound
from tests.support.ontap_scene import LabControl, OntapScene

PREFIX = "ours-"


def test_a_policy_takes_snapshots_of_a_volume(
    least_ontap: OntapScene, lab_control: LabControl
) -> None:
    gateway, name = least_ontap.gateway, least_ontap.name("policy")
    clone = least_ontap.make_clone()
    assert not gateway.has_snapshot_policy(name)
    gateway.create_snapshot_policy(name, keep={"hourly": 2, "daily": 1}, prefix=PREFIX)
    assert gateway.has_snapshot_policy(name)
    with pytest.raises(AlreadyExists):
        gateway.create_snapshot_policy(name, keep={"hourly": 2}, prefix=PREFIX)

    for _ in range(2):
        attached = gateway.set_snapshot_policy(clone.uuid, name=name)
        assert attached.snapshot_policy == name
    with pytest.raises(NotFound):
        gateway.set_snapshot_policy(clone.uuid, name="nobody's")
    lab_control.set_settings(clock_ahead_seconds=25 * 3600.0)

    taken = gateway.list_scheduled_snapshots(prefix=PREFIX)[clone.uuid]
    kinds = sorted(each.name.partition(".")[0] for each in taken)
    assert kinds == ["ours-daily", "ours-hourly"]
    assert all(each.created_at for each in taken)
    gateway.set_snapshot_policy(clone.uuid, name="none")
    assert len(gateway.list_scheduled_snapshots(prefix=PREFIX)[clone.uuid]) == 2
