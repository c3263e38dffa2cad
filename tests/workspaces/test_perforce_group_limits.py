"""Limits of people's groups in Perforce: what we ask as them is cheap, or says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from provisioner.engine.models import Operation
from provisioner.workspaces.models import Rescue, Unsaved, Workspace
from tests.support.lab import Lab
from tests.support.retiring import retire_and_purge
from tests.support.submits import submit
from tests.support.work import AtWork

pytestmark = pytest.mark.django_db(transaction=True)

SUBMITTED = 40


@pytest.fixture
def limit(lab: Lab, lab_workspace: Workspace) -> Iterator[Callable[..., None]]:
    """Put the owner into a group with such limits."""
    p4 = lab.as_admin()

    def limit_to(**fields: object) -> None:
        limits = {name: str(most) for name, most in fields.items()}
        p4.input = {"Group": "people", "Users": [lab_workspace.p4_user], **limits}
        p4.run("group", "-i")

    yield limit_to
    p4.run("group", "-d", "people")
    p4.disconnect()


def test_work_is_rescued_as_a_person_who_may_scan_few_rows(
    lab_workspace: Workspace, at_work: AtWork, lab: Lab, limit: Callable[..., None]
) -> None:
    pending = _count_pending(lab)
    for number in range(pending + SUBMITTED):
        submit(lab, path=f"//depot/elsewhere/{number}.txt")
    at_work.open_for_edit()
    few = pending + SUBMITTED // 2
    limit(MaxScanRows=few, MaxResults=few)

    operation = retire_and_purge(lab_workspace, unsaved=Unsaved.RESCUE)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    [shelf] = Rescue.objects.get(workspace=lab_workspace).shelves
    assert len(shelf["files"]) == 1


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

    operation = retire_and_purge(lab_workspace, unsaved=Unsaved.RESCUE)

    assert operation.state == Operation.State.FAILED, operation.state
    message = operation.status_message
    assert f"Ask for a higher MaxScanRows of {lab_workspace.p4_user}'s" in message
    assert at_work.root.exists()
