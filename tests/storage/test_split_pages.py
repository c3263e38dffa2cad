"""Pages and API of splits, for the owner, strangers, administrators and nobody."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.catalog.actions.snapshots import snapshot_withdraw
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.sites.models import AggregateSpace
from provisioner.storage.actions import split_policy_save, workspace_split
from provisioner.storage.models import SnapshotSize, Split, SplitPolicy
from provisioner.storage.sweeps import keep_own_bytes
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.states import mark_independent

pytestmark = pytest.mark.django_db


@pytest.fixture
def measured(ready: Workspace) -> Workspace:
    """A ready workspace of alice that ONTAP was asked about."""
    Workspace.objects.filter(pk=ready.pk).update(
        split_bytes=6 << 30, measured_at=timezone.now()
    )
    AggregateSpace.objects.create(
        site=ready.site,
        name=ready.site.aggregate,
        size_bytes=2**41,
        available_bytes=2**40,
        measured_at=timezone.now(),
    )
    return ready


def ended_before(workspace: Workspace, by: User) -> None:
    """Let a split have copied 3 GiB in a minute, and leave a clone as it was."""
    operation = workspace_split(by=by, workspace=workspace)
    engine_states.end_operation(operation, Operation.State.SUCCEEDED)
    Split.objects.update(estimate_bytes=3 << 30, seconds=60.0)


def test_a_preview_says_what_is_copied_and_freed(
    measured: Workspace, admin: User, as_admin: Client, as_carol: Client
) -> None:
    page = f"/workspaces/{measured.pk}/split/"
    seen = as_admin.get(page).text
    assert "Up to 6 GiB, as ONTAP estimates." in seen
    assert "How long that takes is not known yet at this site." in seen
    assert "is kept, as new workspaces are cloned from it" in seen
    ended_before(measured, admin)
    assert "About 2 min" in as_admin.get(page).text
    assert as_carol.get(page).status_code == 404
    assert "/login/" in Client().get(page)["Location"]


def test_a_preview_says_how_much_the_end_of_the_snapshot_frees(
    measured: Workspace, admin: User, as_admin: Client, api_as_admin: APIClient
) -> None:
    page = f"/workspaces/{measured.pk}/split/"
    snapshot_withdraw(by=admin, snapshot=measured.snapshot, reason="Broken.")
    assert "is deleted within minutes" in as_admin.get(page).text
    SnapshotSize.objects.create(
        snapshot=measured.snapshot,
        size_bytes=9 << 30,
        reclaimable_bytes=7 << 30,
        measured_at=timezone.now(),
    )

    assert "7 GiB: " in as_admin.get(page).text
    shown = api_as_admin.get(f"/api/v1/workspaces/{measured.pk}/split").json()
    assert shown["frees_bytes"] == 7 << 30


def test_an_owner_splits_where_the_policy_says_so(
    measured: Workspace, admin: User, as_alice: Client
) -> None:
    page = f"/workspaces/{measured.pk}/split/"
    assert "Owners may not split workspaces" in as_alice.get(page).text
    assert as_alice.post(page).status_code == 409
    split_policy_save(by=admin, site=measured.site, owners_may_split=True)
    assert (
        "Split from its snapshot…" in as_alice.get(f"/workspaces/{measured.pk}/").text
    )

    assert as_alice.post(page).status_code == 302

    seen = as_alice.get(page).text
    assert "Splitting hers" in seen
    part = as_alice.get(page, headers={"HX-Request": "true"}).text
    assert part.strip().startswith('<div id="split" hx-get=')
    assert as_alice.post(f"{page}stop/").status_code == 302
    kinds = measured.operations.values_list("kind", "state").order_by("-pk")[:2]
    assert list(kinds) == [
        (WorkspaceOperation.STOP_SPLIT, "running"),
        (WorkspaceOperation.SPLIT, "canceled"),
    ]


def test_an_independent_workspace_says_so(
    measured: Workspace, as_alice: Client
) -> None:
    mark_independent(measured, message="Split.")
    Workspace.objects.filter(pk=measured.pk).update(unique_bytes=5)
    page = f"/workspaces/{measured.pk}/"
    assert "became independent of" in as_alice.get(f"{page}split/").text
    shown = as_alice.get(page).text
    assert "It is independent of its snapshot." in shown
    assert "Split from its snapshot…" not in shown


def test_a_split_that_failed_is_no_refused_retirement(
    measured: Workspace, admin: User, as_alice: Client
) -> None:
    operation = workspace_split(by=admin, workspace=measured)
    engine_states.end_operation(
        operation, Operation.State.FAILED, code="split_stopped", message="Stopped."
    )
    assert "It was not retired" not in as_alice.get(f"/workspaces/{measured.pk}/").text
    assert (
        "The last split ended" in as_alice.get(f"/workspaces/{measured.pk}/split/").text
    )


def test_administrators_set_the_policy_of_a_site(
    measured: Workspace, as_admin: Client, as_alice: Client
) -> None:
    page = f"/policies/splits/{measured.site_id}/"
    assert as_alice.get(page).status_code == 403
    assert as_alice.get("/policies/splits/").status_code == 403
    assert as_admin.get(page).status_code == 200
    limits = {"older_than_days": "30", "pinned_bytes": "100 GiB"}
    assert as_admin.post(page, {**limits, "pinned_bytes": "0 B"}).status_code == 422
    asked = {**limits, "owners_may_split": "on"}
    assert as_admin.post(page, asked).status_code == 302
    assert SplitPolicy.objects.get().owners_may_split
    assert "Owners and administrators" in as_admin.get("/policies/splits/").text


def test_the_api_previews_splits_and_stops(
    measured: Workspace,
    api_as_alice: APIClient,
    api_as_admin: APIClient,
    api_as_carol: APIClient,
    api_as_nobody: APIClient,
) -> None:
    url = f"/api/v1/workspaces/{measured.pk}/split"
    assert api_as_nobody.get(url).status_code == 401
    assert api_as_carol.get(url).status_code == 404
    seen = api_as_alice.get(url).json()
    assert (seen["copies_bytes"], seen["seconds"]) == (6 << 30, None)
    assert (seen["is_unpinned"], seen["is_pruned"]) == (True, False)
    assert seen["refusal"]["code"] == "split_not_allowed"
    assert api_as_alice.post(url).json()["code"] == "split_not_allowed"

    started = api_as_admin.post(url)

    assert (started.status_code, started.json()["kind"]) == (202, "split")
    assert api_as_admin.get(url).json()["operation"]["id"] == started.json()["id"]
    stopped = api_as_admin.post(f"{url}/stop")
    assert (stopped.status_code, stopped.json()["kind"]) == (202, "stop_split")


def test_space_of_its_own_is_plotted_over_days(
    measured: Workspace, as_alice: Client
) -> None:
    today = dt.date(2026, 11, 24)
    for day, own in ((today - dt.timedelta(days=90), 1), (today, 5 << 20)):
        Workspace.objects.filter(pk=measured.pk).update(unique_bytes=own)
        keep_own_bytes(today=day)
    Workspace.objects.filter(pk=measured.pk).update(unique_bytes=6 << 20)
    keep_own_bytes(today=today)

    seen = as_alice.get(f"/workspaces/{measured.pk}/split/").text

    assert "24 Nov 2026" in seen
    assert "6 MiB" in seen
    assert measured.own_bytes_days.get().own_bytes == 6 << 20
