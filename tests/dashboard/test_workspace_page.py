"""What the page of a workspace says and offers, by its state and its reader."""

from __future__ import annotations

import pytest

from provisioner.accounts.models import User
from provisioner.dashboard.overviews import find_workspace_overview
from provisioner.dashboard.workspace_page import WorkspacePage
from provisioner.engine.models import Operation
from provisioner.web.notices import Level
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.sharing import company_of
from provisioner.workspaces.states import set_workspace_state
from tests.support.factories import SnapshotFactory, UserFactory
from tests.support.workspaces import end


def page_for(user: User, workspace: Workspace) -> WorkspacePage:
    overview = find_workspace_overview(user, pk=workspace.pk)
    assert overview is not None
    company = company_of(user, overview.workspace)
    return WorkspacePage(overview=overview, company=company, user=user)


def said(page: WorkspacePage) -> list[tuple[str, list[str]]]:
    return [
        (notice.title, [action.label for action in notice.actions])
        for notice in page.notices
    ]


def labels(page: WorkspacePage) -> list[str]:
    return [action.label for action in page.actions]


def test_a_ready_one_is_retired_and_says_nothing(alice: User, ready: Workspace) -> None:
    page = page_for(alice, ready)
    assert said(page) == []
    assert labels(page) == ["Retire"]
    assert page.back.label == "My workspaces"
    assert page.has_commands
    assert page.has_lease


def test_a_failed_one_is_retried_or_retired(alice: User, failed: Workspace) -> None:
    page = page_for(alice, failed)
    assert said(page) == [("Provisioning failed", ["Retry", "Retire"])]
    [notice] = page.notices
    assert notice.level == Level.ERROR
    assert notice.is_urgent
    assert notice.texts[0] == "The aggregate is full."
    assert labels(page) == []


@pytest.mark.parametrize(
    ("kind", "title", "offered"),
    [
        (WorkspaceOperation.RETIRE, "Retiring failed", ["Retry", "Restore"]),
        (WorkspaceOperation.PURGE, "Purging failed", ["Retry", "Restore"]),
        (WorkspaceOperation.RESTORE, "Restoring failed", ["Retry", "Retire"]),
    ],
)
def test_what_failed_decides_what_is_offered(
    kind: str, title: str, offered: list[str], alice: User, ready: Workspace
) -> None:
    operation = workspace_retire(by=alice, workspace=ready)
    end(operation, Operation.State.FAILED)
    Operation.objects.filter(pk=operation.pk).update(kind=kind)
    ready.refresh_from_db()
    set_workspace_state(
        ready, Workspace.State.FAILED, code="full", message="The aggregate is full."
    )
    assert said(page_for(alice, ready)) == [(title, offered)]


def test_a_refused_retirement_asks_for_a_choice(
    alice: User, refused: Workspace
) -> None:
    page = page_for(alice, refused)
    assert said(page) == [("It was not retired", ["Choose what happens to it"])]
    assert labels(page) == ["Retire"]


def test_a_moving_one_can_be_stopped(alice: User, ready: Workspace) -> None:
    workspace_retire(by=alice, workspace=ready)
    page = page_for(alice, ready)
    assert said(page) == []
    assert labels(page) == ["Stop and restore"]
    assert not page.has_lease


def test_a_newer_snapshot_is_offered_after_everything_else(
    alice: User, refused: Workspace
) -> None:
    SnapshotFactory.create(template=refused.template, change=130)
    titles = [title for title, _ in said(page_for(alice, refused))]
    assert titles == ["It was not retired", "main has a newer snapshot"]


def test_who_may_only_look_is_offered_nothing(failed: Workspace, alice: User) -> None:
    failed.shares.create(person=UserFactory.create(username="dave"), created_by=alice)
    dave = User.objects.get(username="dave")
    page = page_for(dave, failed)
    assert said(page) == [
        ("alice shares this workspace with you, read-only", []),
        ("Provisioning failed", []),
    ]
    assert labels(page) == []
    assert page.back.label == "My workspaces"
