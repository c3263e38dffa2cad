"""Policies of snapshots, and who sees a workspace's snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.lib import clocks
from provisioner.sites.models import Site
from provisioner.workspace_snapshots.models import (
    SnapshotParameters,
    SnapshotPolicy,
    WorkspaceSnapshot,
)
from provisioner.workspace_snapshots.queries import policy_of
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from tests.support.api_clients import api_of
from tests.support.browsers import browser_of

pytestmark = pytest.mark.django_db

PAGE = "/policies/snapshots/"


@pytest.fixture
def taken(ready: Workspace) -> WorkspaceSnapshot:
    return WorkspaceSnapshot.objects.create(
        workspace=ready,
        name="cloneyard-ws-hourly.2026-11-24_0905",
        ontap_uuid="u",
        taken_at=clocks.database_now(),
    )


def test_an_administrator_sets_replaces_and_deletes_policies(
    as_admin: Client, ready: Workspace
) -> None:
    asked = {
        "site": ready.site_id,
        "hourly": "24",
        "daily": "7",
        "max_percent": "50",
    }
    assert as_admin.post(PAGE, asked).status_code == 302
    as_admin.post(PAGE, {**asked, "hourly": "12"})
    as_admin.post(PAGE, {**asked, "purpose": "build", "hourly": "0", "daily": "0"})

    assert sorted(SnapshotPolicy.objects.values_list("hourly", "daily")) == [
        (0, 0),
        (12, 7),
    ]
    assert Event.objects.filter(kind="snapshot_policy_changed").count() == 3
    assert "Build only" in as_admin.get(PAGE).text
    refused = as_admin.post(PAGE, {**asked, "hourly": "169"})
    assert refused.status_code == 422
    assert "168" in refused.text
    as_admin.post(f"{PAGE}{SnapshotPolicy.objects.get(purpose='build').pk}/delete/")
    assert SnapshotPolicy.objects.get().hourly == 12


def test_a_form_begins_with_what_is_saved_and_lifts_no_bound_by_itself(
    as_admin: Client, ready: Workspace
) -> None:
    """The bound was set by another program, and the form suggested 0."""
    policy = SnapshotPolicy.objects.create(
        site=ready.site, template=ready.template, hourly=5, daily=3, max_percent=40
    )
    key = {"site": ready.site_id, "template": ready.template_id}

    empty = as_admin.get(PAGE).context["form"]
    asked = {field.html_name: field.value() or "" for field in empty}
    as_admin.post(PAGE, {**asked, **key, "hourly": "6"})

    policy.refresh_from_db()
    assert (policy.hourly, policy.daily, policy.max_percent) == (6, 3, 40)
    page = as_admin.get(f"{PAGE}?policy={policy.pk}")
    begun = {field.html_name: field.value() for field in page.context["form"]}
    assert begun == {
        **key,
        **{"purpose": "", "hourly": 6, "daily": 3, "max_percent": 40},
    }
    assert f"?policy={policy.pk}" in page.text
    as_admin.post(PAGE, {**begun, "max_percent": "0"})
    policy.refresh_from_db()
    assert policy.max_percent == 0
    assert as_admin.get(f"{PAGE}?policy=none").status_code == 200


def held(workspace: Workspace, *, percent: int) -> None:
    """Write that its snapshots hold so much of its volume, as just measured."""
    Workspace.objects.update(
        actual_size_bytes=200 << 30,
        snapshot_bytes=percent * (2 << 30),
        measured_at=clocks.database_now(),
    )


def test_their_space_is_shown_and_near_its_bound_said(
    taken: WorkspaceSnapshot, as_admin: Client, alice: User
) -> None:
    workspace = taken.workspace
    SnapshotPolicy.objects.create(site=workspace.site, max_percent=20)
    page, limits = f"/workspaces/{workspace.pk}/", "/limits/"
    held(workspace, percent=10)
    assert "They hold 20 GiB of the 40 GiB" in browser_of(alice).get(page).text
    assert workspace.name not in as_admin.get(limits).text
    held(workspace, percent=18)
    for address in (page, f"{page}snapshots/"):
        assert "The oldest is deleted when" in browser_of(alice).get(address).text
    shown = as_admin.get(limits).text
    assert f"Snapshots of the workspace {workspace.name}" in shown
    assert api_of(alice).get(f"/api/v1{page[:-1]}").json()["snapshot_bytes"] == 36 << 30
    asked = {"site": workspace.site_id, "hourly": "2", "daily": "0"}
    assert "100" in as_admin.post(PAGE, {**asked, "max_percent": "101"}).text
    as_admin.post(PAGE, {**asked, "max_percent": "90"})
    assert "The oldest is" not in browser_of(alice).get(page).text
    assert workspace.name not in as_admin.get(limits).text


def test_the_most_specific_policy_counts(ready: Workspace) -> None:
    site, template, purpose = ready.site, ready.template, ready.purpose

    def policy(**of: object) -> SnapshotPolicy:
        return SnapshotPolicy(site=site, **of)

    every, of_purpose = policy(), policy(purpose=purpose)
    of_template = policy(template=template)
    both = policy(template=template, purpose=purpose)
    other = policy(purpose="ci")
    assert policy_of(ready, [other]) is None
    assert policy_of(ready, [every, other]) is every
    assert policy_of(ready, [of_purpose, every]) is of_purpose
    assert policy_of(ready, [of_purpose, of_template]) is of_template
    assert policy_of(ready, [both, of_template, every]) is both


def test_snapshots_are_on_the_page_and_in_previews(
    taken: WorkspaceSnapshot, alice: User
) -> None:
    browser, page = browser_of(alice), f"/workspaces/{taken.workspace_id}/"
    assert "1 snapshot, the newest" in browser.get(page).text
    assert taken.name in browser.get(f"{page}snapshots/").text
    assert "Its 1 snapshot goes with the clone" in browser.get(f"{page}retire/").text
    WorkspaceSnapshot.objects.all().delete()
    assert "the newest" not in browser.get(page).text
    assert "None yet" in browser.get(f"{page}snapshots/").text


def test_a_check_of_before_files_came_from_a_snapshot_does_not_hold(
    taken: WorkspaceSnapshot, alice: User
) -> None:
    about, page = taken.workspace, f"/workspaces/{taken.workspace_id}/retire/"
    for kind, expected in (("check", False), ("restore_snapshot", True)):
        operation = start_operation(kind, about=about, by=alice)
        Operation.objects.filter(pk=operation.pk).update(
            state="succeeded", ended_at=clocks.database_now()
        )
        text = browser_of(alice).get(page).text
        assert ("Not checked yet." in text) == expected


def test_the_api_lists_them(taken: WorkspaceSnapshot, alice: User) -> None:
    api = api_of(alice)
    answer = api.get(f"/api/v1/workspaces/{taken.workspace_id}/snapshots").json()
    [listed] = answer["results"]
    assert (listed["name"], listed["is_client_known"]) == (taken.name, False)


def test_the_api_sets_lists_and_deletes_policies(ready: Workspace, admin: User) -> None:
    api, url = api_of(admin), "/api/v1/snapshot-policies"
    asked = {"site": ready.site.name, "template": ready.template_id, "hourly": 12}
    made = api.post(url, asked)
    assert (made.status_code, made.json()["daily"]) == (200, 7), made.content
    again = api.post(url, {**asked, "hourly": 6}).json()
    assert api.get(url).json()["results"] == [again]
    assert again == {**made.json(), "hourly": 6}
    for wrong in ({"hourly": 169}, {"site": "nowhere"}, {"purpose": "fun"}):
        assert api.post(url, {**asked, **wrong}).status_code == 400
    assert api.delete(f"{url}/{again['id']}").status_code == 204
    assert not SnapshotPolicy.objects.exists()


def test_a_site_that_hides_snapshots_offers_clones_alone(
    taken: WorkspaceSnapshot, alice: User, as_admin: Client
) -> None:
    address = f"/workspaces/{taken.workspace_id}/snapshots/{taken.pk}/"
    hidden = browser_of(alice).get(address).text
    SnapshotPolicy.objects.create(site=taken.workspace.site)
    policies = as_admin.get(PAGE).text
    Site.objects.update(shows_snapshots=True)
    shown = browser_of(alice).get(address).text

    assert "hides .snapshot in clones" in hidden
    assert f"/clone/?snapshot={taken.pk}" in hidden
    for offered in ("Compare now", "Take back", "Restore in place…"):
        assert offered not in hidden
        assert offered in shown
    assert "hides .snapshot: clones only" in policies


def test_a_comparison_from_before_files_came_back_says_so(
    taken: WorkspaceSnapshot, alice: User
) -> None:
    Site.objects.update(shows_snapshots=True)
    address = f"/workspaces/{taken.workspace_id}/snapshots/{taken.pk}/"
    kinds = ("added", "changed", "removed")
    found: dict[str, Any] = {kind: [] for kind in kinds}
    found |= {"counts": dict.fromkeys(kinds, 0), "is_complete": True}
    for kind, findings, expected in (
        (WorkspaceOperation.COMPARE, found, False),
        (WorkspaceOperation.TAKE_BACK, {"files": 1, "kept": [], "failed": []}, True),
    ):
        asked = SnapshotParameters(snapshot=taken.name)
        operation = start_operation(
            kind, about=taken.workspace, by=alice, parameters=asked
        )
        Operation.objects.filter(pk=operation.pk).update(
            state="succeeded", ended_at=clocks.database_now(), findings=findings
        )
        text = browser_of(alice).get(address).text
        assert ("compare again" in text) == expected
