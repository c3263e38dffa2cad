"""What a site's policy splits by itself: shown first, then switched on."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.accounts.system import SYSTEM_USERNAME
from provisioner.audit_log.models import Event
from provisioner.copies.models import WorkspaceCopy
from provisioner.storage.actions import split_policy_save
from provisioner.storage.models import SnapshotSize, SplitPolicy
from provisioner.storage.overviews import due_splits
from provisioner.storage.sweeps import sweep_splits
from provisioner.workspaces.models import Workspace
from tests.support.factories import SiteFactory, SnapshotFactory

pytestmark = pytest.mark.django_db

GIB = 1 << 30


@pytest.fixture
def old(ready: Workspace) -> Workspace:
    """A workspace of a month ago, which alone holds a snapshot of 200 GiB."""
    template = ready.template
    template.snapshots_to_keep = 1
    template.save()
    SnapshotFactory.create(template=template, name="c101.b2", change=101)
    SnapshotSize.objects.create(
        snapshot=ready.snapshot, size_bytes=200 * GIB, measured_at=timezone.now()
    )
    Workspace.objects.filter(pk=ready.pk).update(
        ready_at=timezone.now() - dt.timedelta(days=31), split_bytes=GIB
    )
    ready.refresh_from_db()
    return ready


def due(workspace: Workspace, **limits: int) -> list[Workspace]:
    policy = SplitPolicy(site=workspace.site, **limits)
    return [each.workspace for each in due_splits(policy, now=timezone.now())]


def test_only_what_is_old_and_alone_holds_much_is_due(old: Workspace) -> None:
    assert due(old) == [old]
    assert due(old, older_than_days=32) == []
    assert due(old, pinned_bytes=201 * GIB) == []
    Workspace.objects.update(split_bytes=200 * GIB)
    assert due(old) == []
    Workspace.objects.update(split_bytes=GIB)
    old.snapshot.clones_of_others = 1
    old.snapshot.save()
    assert due(old) == []


def test_what_is_copied_to_another_site_is_not_split(
    old: Workspace, as_admin: Client
) -> None:
    """ONTAP does not split the source of a SnapMirror relationship."""
    copy = WorkspaceCopy.objects.create(
        workspace=old,
        site=SiteFactory.create(name="far"),
        state="ready",
        volume_uuid="v",
        relationship_uuid="r",
    )
    assert due(old) == []
    said = "is copied to far by SnapMirror"
    assert said in as_admin.get(f"/workspaces/{old.pk}/split/").text
    refused = as_admin.post(f"/workspaces/{old.pk}/split/")
    assert said in refused.text
    WorkspaceCopy.objects.filter(pk=copy.pk).update(
        relationship_uuid="", state="failed", status_code="c", failed_at=timezone.now()
    )
    assert due(old) == [old]


def test_it_is_shown_first_and_split_once_it_is_switched_on(
    old: Workspace, admin: User, as_admin: Client
) -> None:
    split_policy_save(by=admin, site=old.site, older_than_days=30)
    seen = as_admin.get(f"/policies/splits/{old.site_id}/").text
    assert "What would be split now" in seen
    assert "frees <data" in seen
    sweep_splits(timestamp=0)
    assert not old.splits.exists()
    split_policy_save(by=admin, site=old.site, splits_by_itself=True)

    sweep_splits(timestamp=0)
    sweep_splits(timestamp=3600)

    assert old.splits.get().operation.requested_by.username == SYSTEM_USERNAME
    told = Event.objects.get(kind="split_requested")
    assert told.reason.startswith(f"The policy of {old.site}: older than 30 days")
    changes = Event.objects.filter(kind="split_policy_changed")
    assert changes.count() == 1
