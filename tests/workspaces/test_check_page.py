"""Checks for unsubmitted work, from a workspace's page and before retiring."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import pytest
from django.test import Client
from django.utils import timezone

from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.unsubmitted import CHECK_HOLDS

FOUND = {
    "untracked": [{"path": "/mnt/w/notes.txt"}],
    "counts": {"untracked": {"count": 1200, "bytes": 5 * 2**20}},
}
BEGINS_BY_ITSELF = 'hx-trigger="load, submit"'


def page_of(workspace: Workspace) -> str:
    return f"/workspaces/{workspace.pk}/"


def check_of(workspace: Workspace) -> str:
    return f"/workspaces/{workspace.pk}/check/"


def retire_of(workspace: Workspace) -> str:
    return f"/workspaces/{workspace.pk}/retire/"


def part(browser: Client, address: str) -> str:
    return browser.get(address, headers={"HX-Request": "true"}).text


def checked(
    browser: Client, workspace: Workspace, found: Mapping[str, object]
) -> Operation:
    """Request a check and end it with these findings."""
    browser.post(check_of(workspace))
    check = workspace.operations.get(
        kind=WorkspaceOperation.CHECK, state=Operation.State.RUNNING
    )
    engine_states.end_operation(check, Operation.State.SUCCEEDED, findings=dict(found))
    engine_states.skip_waiting_steps(check)
    return check


def test_a_check_is_asked_for_and_followed(as_alice: Client, ready: Workspace) -> None:
    assert "Check for unsubmitted work" in as_alice.get(page_of(ready)).text

    answer = as_alice.post(check_of(ready))

    assert answer["Location"] == check_of(ready)
    assert as_alice.get(check_of(ready))["Location"] == f"{page_of(ready)}#unsubmitted"
    assert "every 1s" in part(as_alice, check_of(ready))
    ready.refresh_from_db()
    assert ready.state == Workspace.State.READY


def test_what_was_found_is_shown_with_counts_sizes_and_its_time(
    as_alice: Client, ready: Workspace
) -> None:
    checked(as_alice, ready, FOUND)

    for shown in (
        as_alice.get(page_of(ready)).text,
        part(as_alice, check_of(ready)),
        as_alice.get(retire_of(ready)).text,
    ):
        assert "1,200 things are not submitted." in shown
        assert "/mnt/w/notes.txt" in shown
        assert "5 MiB" in shown
        assert "Checked" in shown
        assert "every 1s" not in shown


def test_what_was_opened_since_a_check_is_said_beside_its_counts(
    as_alice: Client, ready: Workspace
) -> None:
    below = {"action": "add", "path": f"{ready.path}/src/new.c"}
    opened = {"depot_file": "//d/x", "action": "edit", "change": "default"}
    counts = {"opened": {"count": 1, "bytes": 9}, "untracked": {"count": 1, "bytes": 9}}
    found = {"opened": [opened], "untracked": [below], "counts": counts}
    checked(as_alice, ready, found)

    def shown(*, opened: int, seen: dt.timedelta) -> str:
        Workspace.objects.update(
            activity={"opened": {"count": opened}},
            activity_seen_at=timezone.now() + seen,
        )
        return as_alice.get(page_of(ready)).text

    later, before = dt.timedelta(hours=1), dt.timedelta(hours=-1)
    page = shown(opened=5, seen=later)
    assert "Since then: 5 files are opened, as of" in page
    assert "<code>src/new.c</code>" in page
    assert "Since then" not in shown(opened=1, seen=later), "the check says the same"
    assert "Since then" not in shown(opened=5, seen=before), "the check is newer"


def test_shelved_files_are_told_from_their_changes(
    as_alice: Client, ready: Workspace
) -> None:
    change = {"change": 77, "user": "alice", "description": "Try it"}
    counts = {"shelved": {"count": 2, "bytes": 9}}
    checked(as_alice, ready, {"shelved": [change], "counts": counts})

    assert "2 files in 1 change" in as_alice.get(page_of(ready)).text


def test_nothing_found_is_said_too(as_alice: Client, ready: Workspace) -> None:
    checked(as_alice, ready, {})
    assert "No unsubmitted work" in as_alice.get(page_of(ready)).text
    page = as_alice.get(retire_of(ready)).text
    assert "No unsubmitted work" in page
    assert 'value="discard"' not in page


def test_who_retires_sees_what_there_is_before_anything_is_chosen(
    as_alice: Client, ready: Workspace
) -> None:
    page = as_alice.get(retire_of(ready)).text
    assert BEGINS_BY_ITSELF in page
    assert 'value="discard"' not in page

    answer = as_alice.post(check_of(ready), {"then": "retire"})
    assert answer["Location"] == retire_of(ready)
    assert "every 1s" in part(as_alice, retire_of(ready))
    check = ready.operations.get(kind=WorkspaceOperation.CHECK)
    engine_states.end_operation(check, Operation.State.SUCCEEDED, findings=FOUND)

    page = part(as_alice, retire_of(ready))
    assert 'value="rescue"' in page
    assert 'value="discard"' in page
    assert BEGINS_BY_ITSELF not in page
    as_alice.post(retire_of(ready), {"unsubmitted": "rescue"})
    retirement = ready.operations.get(kind=WorkspaceOperation.RETIRE)
    assert retirement.parameters["unsubmitted"] == "rescue"


def test_an_old_check_is_not_relied_on(as_alice: Client, ready: Workspace) -> None:
    check = checked(as_alice, ready, FOUND)
    assert BEGINS_BY_ITSELF not in as_alice.get(retire_of(ready)).text
    before = timezone.now() - CHECK_HOLDS - dt.timedelta(seconds=1)
    Operation.objects.filter(pk=check.pk).update(ended_at=before)
    assert BEGINS_BY_ITSELF in as_alice.get(retire_of(ready)).text


def test_a_check_that_failed_says_why_and_does_not_begin_again(
    as_alice: Client, ready: Workspace
) -> None:
    as_alice.post(check_of(ready))
    check = ready.operations.get(kind=WorkspaceOperation.CHECK)
    engine_states.end_operation(
        check, Operation.State.FAILED, code="unreachable", message="No answer."
    )

    for shown in (
        as_alice.get(page_of(ready)).text,
        as_alice.get(retire_of(ready)).text,
    ):
        assert "The last check failed" in shown
        assert "No answer." in shown
        assert BEGINS_BY_ITSELF not in shown
        assert "It was not retired" not in shown


def test_a_check_that_failed_leaves_what_the_retirement_found(
    as_alice: Client, refused: Workspace
) -> None:
    as_alice.post(check_of(refused))
    check = refused.operations.get(kind=WorkspaceOperation.CHECK)
    engine_states.end_operation(
        check, Operation.State.FAILED, code="unreachable", message="No answer."
    )

    page = as_alice.get(retire_of(refused)).text
    assert "The last check failed" in page
    assert "are not submitted" in page
    assert 'value="rescue"' in page
    assert 'value="discard"' in page


def test_what_could_not_be_compared_is_not_counted_as_work(
    as_alice: Client, ready: Workspace
) -> None:
    unchecked = {"path": str(ready.path), "reason": "No tree."}
    checked(as_alice, ready, {"unchecked": [unchecked]})
    page = as_alice.get(page_of(ready)).text
    assert "Unknown: it could not be compared with Perforce" in page
    assert "thing is not submitted" not in page


def test_without_scripts_the_page_reloads_during_a_check(
    as_alice: Client, ready: Workspace
) -> None:
    again = '<noscript><meta http-equiv="refresh"'
    assert again not in as_alice.get(page_of(ready)).text
    as_alice.post(check_of(ready))
    assert again in as_alice.get(page_of(ready)).text


def test_a_check_does_not_hide_that_it_was_not_retired(
    as_alice: Client, refused: Workspace
) -> None:
    checked(as_alice, refused, FOUND)
    page = as_alice.get(page_of(refused)).text
    assert "It was not retired" in page
    assert "/mnt/w/notes.txt" in page


def test_asking_twice_is_one_check(as_alice: Client, ready: Workspace) -> None:
    as_alice.post(check_of(ready))
    as_alice.post(check_of(ready))
    assert ready.operations.filter(kind=WorkspaceOperation.CHECK).count() == 1


def test_a_workspace_being_made_is_not_checked(
    as_alice: Client, workspace: Workspace
) -> None:
    answer = as_alice.post(check_of(workspace), follow=True)
    assert "“hers” is being created" in answer.text
    htmx = as_alice.post(check_of(workspace), headers={"HX-Request": "true"})
    assert htmx["HX-Redirect"] == page_of(workspace)
    assert not workspace.operations.filter(kind=WorkspaceOperation.CHECK).exists()


@pytest.mark.parametrize("purpose", ["build", "ci"])
def test_a_workspace_that_holds_no_work_is_not_checked(
    as_alice: Client, ready: Workspace, purpose: str
) -> None:
    Workspace.objects.filter(pk=ready.pk).update(purpose=purpose)
    assert check_of(ready) not in as_alice.get(page_of(ready)).text
    assert check_of(ready) not in as_alice.get(retire_of(ready)).text
    as_alice.post(check_of(ready))
    assert not ready.operations.filter(kind=WorkspaceOperation.CHECK).exists()


def test_an_administrator_may(as_admin: Client, ready: Workspace) -> None:
    as_admin.post(check_of(ready))
    assert ready.operations.filter(kind=WorkspaceOperation.CHECK).exists()


def test_a_stranger_may_not(as_carol: Client, ready: Workspace) -> None:
    assert as_carol.get(check_of(ready)).status_code == 404
    assert as_carol.post(check_of(ready)).status_code == 404
    assert not ready.operations.filter(kind=WorkspaceOperation.CHECK).exists()


def test_nobody_may_not(as_nobody: Client, ready: Workspace) -> None:
    assert as_nobody.post(check_of(ready))["Location"].startswith("/login/")
    assert not ready.operations.filter(kind=WorkspaceOperation.CHECK).exists()
