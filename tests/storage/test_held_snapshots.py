"""What holds each snapshot: measured on the lab, and shown to administrators."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.storage.models import SnapshotSize
from provisioner.storage.overviews import held
from provisioner.storage.sweeps import measure, measure_snapshots, sweep_snapshot_sizes
from provisioner.workspaces.models import Workspace
from tests.support.factories import SnapshotFactory
from tests.support.lab import Lab
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db


@pytest.fixture
def older(snapshot: Snapshot, workspace: Workspace) -> Snapshot:
    """The snapshot of alice's workspace, which nothing else keeps any more."""
    template = snapshot.template
    template.snapshots_to_keep = 1
    template.save()
    SnapshotFactory.create(template=template, name="c101.b2", change=101)
    return snapshot


def test_snapshots_are_measured_and_a_failure_keeps_what_was(
    lab_workspace: Workspace, lab: Lab
) -> None:
    site = lab_workspace.site
    sweep_snapshot_sizes(timestamp=0)
    measure(site)
    size = SnapshotSize.objects.get(snapshot=lab_workspace.snapshot)
    assert size.frees_bytes == size.size_bytes
    lab.break_ontap(
        {"method": "GET", "path": "/api/storage/volumes/*/snapshots", "status": 503}
    )

    measure_snapshots(site_id=site.pk)

    lab.break_ontap()
    assert SnapshotSize.objects.get() == size
    measure(site)
    assert SnapshotSize.objects.get().measured_at > size.measured_at


def test_what_frees_a_snapshot_is_said(
    older: Snapshot, alice: User, workspace: Workspace
) -> None:
    def freed_by() -> str:
        [row] = held([older])
        return row.freed_by

    assert freed_by() == "Retire and purge hers, or split it."
    Workspace.objects.update(is_pooled=True, remote_name="p", expires_at=None)
    assert freed_by() == "Retire and purge hers (pool), or split it."
    Workspace.objects.update(split_at="2026-11-24T09:00:00Z")
    assert freed_by() == "Retention deletes it within minutes."
    older.clones_of_others = 2
    older.save()
    assert freed_by() == "Nothing yet."


def test_administrators_see_what_holds_snapshots(
    older: Snapshot, as_admin: Client, as_alice: Client
) -> None:
    SnapshotSize.objects.create(
        snapshot=older,
        size_bytes=5 << 30,
        reclaimable_bytes=2 << 30,
        measured_at="2026-11-24T09:00:00Z",
    )
    page = "/storage/snapshots/"
    seen = as_admin.get(page).text
    assert "Retire and purge hers, or split it." in seen
    assert "5 GiB" in seen
    assert "2 GiB" in seen
    assert "new workspaces are cloned from it" in seen
    sheet = as_admin.get(f"{page}?as=csv&q={older.name}").getvalue().decode()
    assert f"{5 << 30},{2 << 30},1,hers" in sheet
    assert "c101.b2" not in as_admin.get(f"{page}?q={older.name}").text
    assert as_alice.get(page).status_code == 403
    assert "/login/" in Client().get(page)["Location"]


def test_the_api_lists_what_holds_snapshots(
    older: Snapshot,
    api_as_admin: APIClient,
    api_as_alice: APIClient,
    api_as_nobody: APIClient,
) -> None:
    url = "/api/v1/storage/snapshots"
    newest, found = api_as_admin.get(url).json()["results"]
    assert newest["kept_for"]
    assert (found["name"], found["size_bytes"]) == (older.name, None)
    assert [each["name"] for each in found["holders"]] == ["hers"]
    assert api_as_admin.get(f"{url}?site=elsewhere").json()["results"] == []
    assert api_as_alice.get(url).status_code == 403
    assert api_as_nobody.get(url).status_code == 401


def test_many_templates_take_no_more_queries_than_one(
    older: Snapshot, alice: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(4):
        workspace_create(by=alice, template=SnapshotFactory.create().template)
    with django_assert_max_num_queries(9):
        assert len(held(list(Snapshot.objects.all()))) == 6
