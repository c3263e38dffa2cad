"""Who is offered to restore a workspace from a copy, on pages and in the API."""

from __future__ import annotations

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.copies.models import CopiedSnapshot, WorkspaceCopy
from provisioner.lib import clocks
from provisioner.recovery.models import Recovery
from provisioner.sites.models import SiteCapacity
from provisioner.workspaces.models import Workspace
from tests.support.api_clients import api_of
from tests.support.browsers import browser_of
from tests.support.factories import MirrorFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def copy(snapshot: Snapshot, ready: Workspace) -> WorkspaceCopy:
    mirror = MirrorFactory.create(template=snapshot.template, site__name="bangalore")
    copy = WorkspaceCopy.objects.create(
        workspace=ready,
        site=mirror.site,
        state="ready",
        volume_uuid="v",
        relationship_uuid="r",
    )
    now = clocks.database_now()
    CopiedSnapshot.objects.create(copy=copy, taken_at=now, arrived_at=now)
    return copy


def stop(workspace: Workspace) -> None:
    SiteCapacity.objects.create(
        site=workspace.site, failing_since=clocks.database_now(), status_message="Gone."
    )


def test_its_owner_restores_it_while_its_site_is_away(
    copy: WorkspaceCopy, alice: User
) -> None:
    browser, page = browser_of(alice), f"/workspaces/{copy.workspace_id}/"
    assert "Restore at bangalore" not in browser.get(page).text
    refused = browser.post(f"{page}copies/{copy.pk}/restore/")
    assert refused.status_code == 409
    assert "munich answers" in refused.text or "answers, so" in refused.text
    stop(copy.workspace)
    assert "Its last copy can be restored" in browser.get(page).text
    assert "Restore at bangalore" in browser.get(page).text
    assert "Work since then is missing" in (
        browser.get(f"{page}copies/{copy.pk}/restore/").text
    )

    made = browser.post(f"{page}copies/{copy.pk}/restore/", {"name": "again"})

    restored = Recovery.objects.get().workspace
    assert made["Location"] == f"/workspaces/{restored.pk}/"
    assert (restored.name, restored.owner) == ("again", alice)
    assert "Work since then is not here" in browser.get(made["Location"]).text


def test_an_administrator_restores_it_once_the_original_is_stopped(
    copy: WorkspaceCopy, admin: User
) -> None:
    browser = browser_of(admin)
    address = f"/workspaces/{copy.workspace_id}/copies/{copy.pk}/restore/"
    assert browser.post(address).status_code == 409

    browser.post(address, {"is_stopped": "on"})

    assert Recovery.objects.get().workspace.owner == copy.workspace.owner


def test_the_api_restores_it_once(copy: WorkspaceCopy, alice: User) -> None:
    api = api_of(alice)
    address = f"/api/v1/workspaces/{copy.workspace_id}/restore-copy"
    assert api.post(address, {"site": "bangalore"}).json()["code"] == "original_answers"
    assert api.post(address, {"site": copy.workspace.site.name}).status_code == 404
    stop(copy.workspace)

    first = api.post(address, {"site": "bangalore"})
    second = api.post(address, {"site": "bangalore"})

    assert first.status_code == second.status_code == 202
    assert first.json()["id"] == second.json()["id"]
    CopiedSnapshot.objects.update(arrived_at=None)
    nothing = api.post(address, {"site": "bangalore"})
    assert nothing.json()["code"] == "nothing_copied"
