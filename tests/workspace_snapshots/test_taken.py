"""ONTAP takes snapshots by policy, and what the client had is recorded with them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from provisioner.accounts.models import User
from provisioner.gateways import registry
from provisioner.gateways.errors import Unreachable
from provisioner.gateways.ontap.types import VolumeSnapshot
from provisioner.lib import clocks
from provisioner.workspace_snapshots import sweeps
from provisioner.workspace_snapshots.actions import snapshot_policy_save
from provisioner.workspace_snapshots.models import (
    PREFIX,
    ClientReading,
    SnapshotPolicy,
    WorkspaceSnapshot,
)
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.recording import read_client
from tests.support.jobs import settle
from tests.support.lab import Lab
from tests.support.ontap_scene import LabControl
from tests.support.work import AtWork

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = 3600.0
LOST = {"method": "POST", "drop": True, "when": "after", "times": 1}


def follow(workspace: Workspace) -> list[WorkspaceSnapshot]:
    """Do what the sweep asks for, and return the snapshots, oldest first."""
    sweeps.follow_site(site_id=workspace.site_id)
    sweeps.read_clients(site_id=workspace.site_id)
    found = WorkspaceSnapshot.objects.filter(workspace=workspace)
    return list(found.order_by("taken_at"))


def attached_to(workspace: Workspace) -> str:
    gateway = registry.ontap(workspace.site)
    return gateway.get_volume(workspace.volume_uuid).snapshot_policy


def test_snapshots_are_taken_recorded_and_end_in_the_trash(
    at_work: AtWork, control: LabControl, admin: User, lab: Lab
) -> None:
    workspace = at_work.workspace
    at_work.open_for_edit()
    assert follow(workspace) == []
    snapshot_policy_save(by=admin, site=workspace.site, hourly=2, daily=0)
    lab.break_ontap({**LOST, "path": "/api/storage/snapshot-policies"})
    for _ in range(2):
        assert follow(workspace) == []
    lab.break_ontap()
    assert attached_to(workspace) == "cloneyard-ws-h2-d0"

    control.set_settings(clock_ahead_seconds=HOUR)
    [first] = follow(workspace)
    control.set_settings(clock_ahead_seconds=2 * HOUR)
    both = follow(workspace)

    assert both[0] == first
    assert first.reading is not None
    [opened] = first.reading.opened
    assert opened["depot_file"].endswith("/src/file3.txt")
    assert both[1].reading == first.reading  # nobody used the client since
    control.set_settings(clock_ahead_seconds=3 * HOUR)
    assert follow(workspace)[0] == both[1]  # the oldest went
    snapshot_policy_save(
        by=admin, site=workspace.site, purpose="development", hourly=0, daily=0
    )
    follow(workspace)
    assert attached_to(workspace) == "none"

    workspace_retire(
        by=workspace.owner, workspace=workspace, unsubmitted="discard", purge=True
    )
    assert settle(workspace).state == Workspace.State.RETIRED
    assert follow(workspace) == []
    assert not ClientReading.objects.exists()


def test_a_policy_of_somebody_else_stays(
    lab_workspace: Workspace, control: LabControl, admin: User
) -> None:
    workspace = lab_workspace
    snapshot_policy_save(by=admin, site=workspace.site, hourly=2, daily=1)
    gateway = registry.ontap(workspace.site)
    gateway.set_snapshot_policy(workspace.volume_uuid, name="default")

    follow(workspace)

    assert attached_to(workspace) == "default"


def test_a_client_that_cannot_be_read_is_read_later(
    lab_workspace: Workspace, control: LabControl, admin: User, lab: Lab
) -> None:
    workspace = lab_workspace
    snapshot_policy_save(by=admin, site=workspace.site, hourly=2, daily=0)
    follow(workspace)
    control.set_settings(clock_ahead_seconds=HOUR)
    lab.break_perforce({"command": "*", "error": "broken"})
    try:
        [unread] = follow(workspace)
    finally:
        lab.break_perforce()
    assert unread.reading is None

    [read] = follow(workspace)

    assert read.reading is not None


def test_a_snapshot_that_came_while_they_were_listed_keeps_its_row(
    lab_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ontap = registry.ontap(lab_workspace.site)
    listed = ontap.list_scheduled_snapshots

    def slowly(*, prefix: str) -> dict[str, list[VolumeSnapshot]]:
        found = listed(prefix=prefix)
        WorkspaceSnapshot.objects.create(
            workspace=lab_workspace,
            name="cloneyard-ws-before-restore.1",
            ontap_uuid="taken-meanwhile",
            taken_at=clocks.database_now(),
        )
        return found

    with monkeypatch.context() as patched:
        patched.setattr(ontap, "list_scheduled_snapshots", slowly)
        sweeps.record_snapshots(lab_workspace.site, ontap)
    assert WorkspaceSnapshot.objects.count() == 1

    sweeps.record_snapshots(lab_workspace.site, ontap)
    assert not WorkspaceSnapshot.objects.exists()


def test_a_reading_that_was_recorded_meanwhile_stays(
    lab_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = WorkspaceSnapshot.objects.create(
        workspace=lab_workspace,
        name="cloneyard-ws-before-restore.1",
        ontap_uuid="u",
        taken_at=clocks.database_now(),
    )
    first = ClientReading.objects.create(
        workspace=lab_workspace, **read_client(lab_workspace, before=None)
    )
    found = read_client(lab_workspace, before=None)

    def slowly(*args: object, **kwargs: object) -> dict[str, Any]:
        kept.reading = first
        kept.save()
        return {**found, "accessed_at": clocks.database_now()}

    monkeypatch.setattr(sweeps, "read_client", slowly)
    sweeps.read_clients(site_id=lab_workspace.site_id)

    kept.refresh_from_db()
    assert kept.reading == first


def test_what_holds_too_much_loses_its_oldest_snapshot(
    at_work: AtWork, admin: User
) -> None:
    """One after each measurement, and never the newest."""
    workspace = at_work.workspace
    snapshot_policy_save(
        by=admin, site=workspace.site, hourly=9, daily=0, max_percent=10
    )
    ontap = registry.ontap(workspace.site)
    uuid = workspace.volume_uuid
    for number in range(3):
        name = f"{PREFIX}hourly.{number}"
        ontap.create_snapshot(uuid, name=name, comment="")
    sweeps.record_snapshots(workspace.site, ontap)
    now = clocks.database_now()

    def names(*, percent: int, minutes_ago: int) -> list[str]:
        """Return what is left once the snapshots were measured to hold so much."""
        Workspace.objects.filter(pk=workspace.pk).update(
            actual_size_bytes=100 << 20,
            snapshot_bytes=percent << 20,
            measured_at=now - dt.timedelta(minutes=minutes_ago),
        )
        sweeps.bound_snapshots(workspace.site, ontap, now=now)
        there = {each.name for each in ontap.list_snapshots(uuid)}
        return sorted(name for name in there if name.startswith(PREFIX))

    first, second, newest = (f"{PREFIX}hourly.{number}" for number in range(3))
    policies = SnapshotPolicy.objects
    policies.update(max_percent=0)
    assert names(percent=90, minutes_ago=0) == [first, second, newest]
    policies.update(max_percent=10)
    assert names(percent=10, minutes_ago=0) == [first, second, newest]
    assert names(percent=50, minutes_ago=6) == [first, second, newest]
    delete = ontap.delete_snapshot

    def lost(*args: Any, **options: Any) -> None:
        delete(*args, **options)
        raise Unreachable("The reply was lost.", system="ontap", operation="DELETE")

    with pytest.MonkeyPatch.context() as lossy:
        lossy.setattr(ontap, "delete_snapshot", lost)
        with pytest.raises(Unreachable):
            names(percent=50, minutes_ago=0)
    sweeps.record_snapshots(workspace.site, ontap)
    left = [each.name for each in ontap.list_snapshots(uuid)]
    assert (first in left, second in left, newest in left) == (False, True, True)
    assert names(percent=50, minutes_ago=0) == [newest]
    assert names(percent=50, minutes_ago=0) == [newest]
    said = workspace.events.filter(kind="workspace_snapshot_deleted")
    assert said.count() == 2
    oldest = said.order_by("pk")[0].message
    assert oldest == (
        f"Its oldest snapshot {first} was deleted. They hold 50 MiB of the 10 MiB that "
        "their policy allows."
    )
