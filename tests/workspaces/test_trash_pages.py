"""The pages of the trash: its list, restoring, purging."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Rescue, Workspace, WorkspaceOperation
from provisioner.workspaces.states import set_workspace_state


@pytest.fixture
def trashed(ready: Workspace, alice: User) -> Workspace:
    """One of alice's, in the trash."""
    operation = workspace_retire(by=alice, workspace=ready)
    engine_states.end_operation(operation, Operation.State.SUCCEEDED)
    engine_states.skip_waiting_steps(operation)
    ready.refresh_from_db()
    set_workspace_state(
        ready,
        Workspace.State.TRASHED,
        purge_at=timezone.now() + dt.timedelta(hours=73),
    )
    Rescue.objects.create(
        workspace=ready,
        operation=operation,
        has_archive=True,
        directory="/rescue/alice/hers-1",
        archived_files=2,
        archived_bytes=3072,
        archive_sha256="0" * 64,
        shelves=[{"change": 7, "was": "default", "files": ["//a"], "made_by_us": True}],
        has_work=True,
        is_complete=True,
    )
    return ready


def operations(workspace: Workspace, kind: str) -> int:
    return workspace.operations.filter(kind=kind).count()


def test_the_trash_lists_what_can_come_back(
    as_alice: Client, as_carol: Client, trashed: Workspace
) -> None:
    page = as_alice.get("/trash/").text
    assert "hers" in page
    assert "in 3 d" in page
    assert f"/workspaces/{trashed.pk}/restore/" in page
    assert "hers" not in as_carol.get("/trash/").text


def test_an_empty_trash_says_so(as_carol: Client) -> None:
    assert "Nothing is in your trash" in as_carol.get("/trash/").text


def test_home_leads_to_the_trash_and_leaves_it_out(
    as_alice: Client, trashed: Workspace
) -> None:
    page = as_alice.get("/").text
    assert 'href="/trash/"' in page
    assert f'href="/workspaces/{trashed.pk}/"' not in page


def test_its_page_says_what_was_rescued(as_alice: Client, trashed: Workspace) -> None:
    page = as_alice.get(f"/workspaces/{trashed.pk}/").text
    assert "In the trash" in page
    assert "/rescue/alice/hers-1" in page
    assert "p4 unshelve -s 7" in page
    assert "3 KiB" in page


def test_a_have_list_that_was_kept_is_not_said_to_be_rescued_work(
    as_alice: Client, trashed: Workspace
) -> None:
    Rescue.objects.update(
        has_work=False,
        has_archive=False,
        directory="",
        archived_files=0,
        archive_sha256="",
        shelves=[],
        have_differences=[["//depot/a.c", 3]],
    )

    page = as_alice.get(f"/workspaces/{trashed.pk}/").text

    assert "In the trash" in page
    assert "Rescued work" not in page


def test_it_is_brought_back_with_one_click(
    as_alice: Client, trashed: Workspace
) -> None:
    answer = as_alice.post(f"/workspaces/{trashed.pk}/restore/")
    assert answer["Location"] == f"/workspaces/{trashed.pk}/"
    trashed.refresh_from_db()
    assert trashed.state == Workspace.State.RESTORING
    as_alice.post(f"/workspaces/{trashed.pk}/restore/")
    assert operations(trashed, WorkspaceOperation.RESTORE) == 1


def test_what_is_in_use_cannot_be_brought_back(
    as_alice: Client, ready: Workspace
) -> None:
    answer = as_alice.post(f"/workspaces/{ready.pk}/restore/", follow=True)
    assert "is not in the trash" in answer.text
    assert operations(ready, WorkspaceOperation.RESTORE) == 0


def test_purging_asks_first(as_alice: Client, trashed: Workspace) -> None:
    Workspace.objects.update(unique_bytes=5 * 2**20, measured_at=timezone.now())
    page = as_alice.get(f"/workspaces/{trashed.pk}/purge/").text
    assert "Purge hers?" in page
    assert "5 MiB</data>, the space it does not share" in page
    assert operations(trashed, WorkspaceOperation.PURGE) == 0


def test_a_confirmed_purge_starts(as_alice: Client, trashed: Workspace) -> None:
    answer = as_alice.post(f"/workspaces/{trashed.pk}/purge/")
    assert answer["Location"] == f"/workspaces/{trashed.pk}/"
    trashed.refresh_from_db()
    assert trashed.state == Workspace.State.PURGING


def test_only_the_trash_can_be_purged(as_alice: Client, ready: Workspace) -> None:
    assert (
        "It is not in the trash" in as_alice.get(f"/workspaces/{ready.pk}/purge/").text
    )
    answer = as_alice.post(f"/workspaces/{ready.pk}/purge/")
    assert answer.status_code == 409
    assert operations(ready, WorkspaceOperation.PURGE) == 0


@pytest.mark.parametrize("what", ["restore", "purge"])
def test_an_administrator_may(as_admin: Client, trashed: Workspace, what: str) -> None:
    assert as_admin.post(f"/workspaces/{trashed.pk}/{what}/").status_code == 302
    assert operations(trashed, what) == 1


@pytest.mark.parametrize("what", ["restore", "purge"])
def test_a_stranger_may_not(as_carol: Client, trashed: Workspace, what: str) -> None:
    assert as_carol.post(f"/workspaces/{trashed.pk}/{what}/").status_code == 404
    assert operations(trashed, what) == 0


@pytest.mark.parametrize("what", ["restore", "purge"])
def test_nobody_may_not(as_nobody: Client, trashed: Workspace, what: str) -> None:
    answer = as_nobody.post(f"/workspaces/{trashed.pk}/{what}/")
    assert answer["Location"].startswith("/login/")
    assert operations(trashed, what) == 0
