"""What pages say of snapshots: quality, freshness, age, and what keeps them."""

from __future__ import annotations

import pytest
from django.test import Client

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine.models import Operation
from provisioner.workspaces.models import Workspace
from tests.support.behind import known_to_be_behind
from tests.support.factories import SnapshotFactory
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db


@pytest.fixture
def tested(template: Template) -> Template:
    Template.objects.filter(pk=template.pk).update(
        test_command="make test", wanted_quality="tested"
    )
    template.refresh_from_db()
    return template


@pytest.fixture
def wrong(tested: Template) -> Snapshot:
    """One that must be chosen: its test failed, and part of it is newer."""
    parts = [{"path": "//depot/main/src/...", "change": 200}]
    return SnapshotFactory.create(template=tested, quality="failed", parts=parts)


def test_a_template_without_a_good_one_says_so_and_lets_people_choose(
    as_alice: Client, tested: Template, wrong: Snapshot
) -> None:
    assert "No snapshot is tested" in as_alice.get("/templates/").text
    page = as_alice.get(f"/templates/{tested.pk}/").text
    assert "No snapshot is tested" in page
    assert "Tests failed, refreshed in part" in page
    assert "//depot/main/src/..." in page
    address = f"/templates/{tested.pk}/get/"
    assert "This template requires tested snapshots, and has none" in (
        as_alice.get(address).text
    )

    refused = as_alice.post(address, {})
    assert refused.status_code == 409
    assert "has no snapshot that is tested" in refused.text

    as_alice.post(address, {"snapshot": wrong.pk})
    assert Workspace.objects.get().snapshot == wrong


def test_the_choice_shows_quality_freshness_and_age(
    as_alice: Client, tested: Template
) -> None:
    snapshot = SnapshotFactory.create(template=tested, quality="tested")
    SnapshotFactory.create(template=tested, change=101)
    known_to_be_behind(snapshot, "bob", "carol")

    page = as_alice.get(f"/templates/{tested.pk}/get/").text

    assert f"Change {snapshot.change}, tested, 2 changes behind, built " in page
    assert f"Latest (recommended): change {snapshot.change}, tested, 2 changes" in page
    assert "Change 101, built, 1 change behind, built " in page
    as_alice.post(f"/templates/{tested.pk}/get/", {"quality": "built"})
    assert Workspace.objects.get().snapshot.change == 101


def test_administrators_see_whose_workspaces_keep_it_others_how_many(
    as_alice: Client, snapshot: Snapshot, alice: User, admin: User
) -> None:
    workspace_create(by=alice, template=snapshot.template, name="alices-own")
    address = f"/templates/{snapshot.template_id}/"

    page = as_alice.get(address).text
    assert "1 workspace is cloned from it" in page
    assert "New workspaces are cloned from it." in page
    assert "alices-own" not in page

    as_alice.force_login(admin)
    assert "alices-own" in as_alice.get(address).text


def test_clean_and_partial_builds_are_asked_for(
    client: Client, admin: User, snapshot: Snapshot
) -> None:
    client.force_login(admin)
    address = f"/templates/{snapshot.template_id}/build/"

    refused = client.post(address, {"paths": "//depot/other/..."})
    assert refused.status_code == 409
    assert "is not in the view" in refused.text
    both = client.post(address, {"is_clean": "on", "paths": "//depot/main/a"})
    assert both.status_code == 409
    client.post(address, {"paths": "//depot/main/a/...\r\n\r\n//depot/main/b\r\n"})

    operation = Operation.objects.get()
    assert operation.parameters == {"paths": ["//depot/main/a/...", "//depot/main/b"]}
