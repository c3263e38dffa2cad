"""Limits of people's groups in Perforce: what we ask as them is cheap, or says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from provisioner.engine.models import Operation
from provisioner.workspaces.models import Rescue, Unsubmitted, Workspace
from tests.support.lab import Lab
from tests.support.newer_snapshots import (
    Others,
    bring,
    edit,
    opened_in,
)
from tests.support.retiring import restore, retire, retire_and_purge
from tests.support.submits import submit
from tests.support.work import AtWork

pytestmark = pytest.mark.django_db(transaction=True)

SUBMITTED = 40


@pytest.fixture
def limit(lab: Lab) -> Iterator[Callable[..., None]]:
    """Put the owner into a group with such limits."""
    p4 = lab.as_admin()

    def limit_to(**fields: object) -> None:
        limits = {name: str(most) for name, most in fields.items()}
        p4.input = {"Group": "people", "Users": ["alice"], **limits}
        p4.run("group", "-i")

    yield limit_to
    p4.run("group", "-d", "people")
    p4.disconnect()


def test_work_is_rescued_as_a_person_who_may_scan_few_rows(
    lab_workspace: Workspace, at_work: AtWork, lab: Lab, limit: Callable[..., None]
) -> None:
    at_work.open_for_edit()
    limit_to_few_rows(lab, limit)

    operation = retire_and_purge(lab_workspace, unsubmitted=Unsubmitted.RESCUE)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    [shelf] = Rescue.objects.get(workspace=lab_workspace).shelves
    assert len(shelf["files"]) == 1


def test_work_is_restored_as_a_person_who_may_scan_few_rows(
    lab_workspace: Workspace, at_work: AtWork, lab: Lab, limit: Callable[..., None]
) -> None:
    at_work.open_for_edit()
    at_work.leave_an_untracked_file()
    limit_to_few_rows(lab, limit)
    assert retire(lab_workspace).state == Operation.State.SUCCEEDED

    operation = restore(lab_workspace)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    lab_workspace.refresh_from_db()
    assert lab_workspace.state == Workspace.State.READY
    assert lab_workspace.status_message == ""
    [opened] = opened_in(lab_workspace).values()
    assert (opened.action, opened.user) == ("edit", "alice")
    assert (at_work.root / "src" / "notes.txt").exists()


def test_what_a_limit_kept_from_being_restored_is_restored_without_it(
    lab_workspace: Workspace, at_work: AtWork, limit: Callable[..., None]
) -> None:
    at_work.open_for_edit()
    assert retire(lab_workspace).state == Operation.State.SUCCEEDED
    limit(MaxScanRows=0)

    operation = restore(lab_workspace)

    assert operation.state == Operation.State.FAILED, operation.state
    assert "Ask for a higher MaxScanRows of alice's" in operation.status_message
    limit(MaxScanRows="unlimited")
    operation = restore(lab_workspace)
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert list(opened_in(lab_workspace)) == ["file3.txt"]


@pytest.mark.integration
def test_work_is_transferred_as_a_person_who_may_scan_few_rows(
    alice_at_work: AtWork, others: Others, lab: Lab, limit: Callable[..., None]
) -> None:
    workspace = alice_at_work.workspace
    edit(alice_at_work, "src/file3.txt", "mine\n")
    others.write("src/file8.txt", "line of 8\ntheirs\n")
    others.publish(workspace.template)
    limit_to_few_rows(lab, limit)

    transfer = bring(workspace)

    arrived = transfer.workspace
    assert arrived.state == Workspace.State.READY, arrived.status_message
    assert list(opened_in(arrived)) == ["file3.txt"]
    assert (arrived.path / "src/file3.txt").read_text() == "mine\n"
    assert "theirs" in (arrived.path / "src/file8.txt").read_text()


def limit_to_few_rows(lab: Lab, limit: Callable[..., None]) -> None:
    """Let the owner read far fewer rows than there are changes."""
    pending = _count_pending(lab)
    for number in range(pending + SUBMITTED):
        submit(lab, path=f"//depot/elsewhere/{number}.txt")
    few = pending + SUBMITTED // 2
    limit(MaxScanRows=few, MaxResults=few)


def _count_pending(lab: Lab) -> int:
    """Return how many changes are pending: a list of one client's reads them all."""
    p4 = lab.as_admin()
    count = len(p4.run("changes", "-s", "pending"))
    p4.disconnect()
    return count


def test_a_limit_that_is_too_low_is_named_with_whose_it_is(
    lab_workspace: Workspace, at_work: AtWork, limit: Callable[..., None]
) -> None:
    at_work.shelve()
    at_work.open_for_edit()
    limit(MaxScanRows=0)

    operation = retire_and_purge(lab_workspace, unsubmitted=Unsubmitted.RESCUE)

    assert operation.state == Operation.State.FAILED, operation.state
    message = operation.status_message
    assert f"Ask for a higher MaxScanRows of {lab_workspace.p4_user}'s" in message
    assert at_work.root.exists()
