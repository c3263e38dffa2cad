from __future__ import annotations

import pytest
from django.test import Client

from provisioner.engine.models import Operation
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.steps.provision import FINDINGS_SHOWN


def address_of(workspace: Workspace) -> str:
    return f"/workspaces/{workspace.pk}/retire/"


def retirements(workspace: Workspace) -> list[Operation]:
    return list(workspace.operations.filter(kind=WorkspaceOperation.RETIRE))


def test_it_asks_first(as_alice: Client, ready: Workspace) -> None:
    page = as_alice.get(address_of(ready)).text
    assert "Retire hers?" in page
    assert ready.client_name in page
    assert 'name="unsubmitted"' not in page
    assert not retirements(ready)


def test_a_confirmed_one_is_retired(as_alice: Client, ready: Workspace) -> None:
    answer = as_alice.post(address_of(ready))
    assert answer["Location"] == f"/workspaces/{ready.pk}/"
    ready.refresh_from_db()
    assert ready.state == Workspace.State.RETIRING
    assert retirements(ready)[0].parameters["unsubmitted"] == "refuse"


def test_discarding_cannot_be_asked_for_unseen(
    as_alice: Client, ready: Workspace
) -> None:
    as_alice.post(address_of(ready), {"unsubmitted": "discard"})
    assert retirements(ready)[0].parameters["unsubmitted"] == "refuse"


def test_after_a_refusal_it_lists_what_would_be_lost(
    as_alice: Client, refused: Workspace
) -> None:
    page = as_alice.get(address_of(refused)).text
    assert "//depot/main/src/render.cpp" in page
    assert "/mnt/w/notes.txt" in page
    assert 'value="rescue"' in page
    assert 'value="discard"' in page


def test_files_that_could_not_be_compared_are_said_and_can_be_discarded(
    as_alice: Client, refused: Workspace
) -> None:
    found = {"unchecked": [{"path": "/mnt/w", "reason": "its client is gone"}]}
    refused.operations.filter(state=Operation.State.REFUSED).update(findings=found)

    page = as_alice.get(address_of(refused)).text

    assert "Could not be compared" in page
    assert "its client is gone" in page
    assert 'value="rescue"' not in page
    assert 'value="discard"' in page


def test_a_list_that_was_cut_says_so(as_alice: Client, refused: Workspace) -> None:
    found = {"untracked": [{"path": f"/mnt/w/{n}"} for n in range(FINDINGS_SHOWN)]}
    refused.operations.filter(state=Operation.State.REFUSED).update(findings=found)

    page = as_alice.get(address_of(refused)).text

    assert f"the first {FINDINGS_SHOWN}" in page


@pytest.mark.parametrize("choice", ["refuse", "rescue", "discard"])
def test_after_a_refusal_there_is_a_choice(
    as_alice: Client, refused: Workspace, choice: str
) -> None:
    as_alice.post(address_of(refused), {"unsubmitted": choice})
    assert retirements(refused)[0].parameters["unsubmitted"] == choice


def test_one_that_is_being_made_can_be_stopped(
    as_alice: Client, workspace: Workspace
) -> None:
    assert "Provisioning stops" in as_alice.get(address_of(workspace)).text
    as_alice.post(address_of(workspace))
    assert len(retirements(workspace)) == 1


def test_asking_twice_is_one_retirement(as_alice: Client, ready: Workspace) -> None:
    as_alice.post(address_of(ready))
    assert as_alice.post(address_of(ready)).status_code == 302
    assert len(retirements(ready)) == 1
    assert "already being retired" in as_alice.get(address_of(ready)).text


def test_a_retired_one_is_said_to_be(as_alice: Client, retired: Workspace) -> None:
    assert "It is already retired" in as_alice.get(address_of(retired)).text
    answer = as_alice.post(address_of(retired))
    assert answer.status_code == 409
    assert "was retired" in answer.text


def test_an_administrator_may(as_admin: Client, ready: Workspace) -> None:
    assert as_admin.post(address_of(ready)).status_code == 302


def test_a_stranger_may_not(as_carol: Client, ready: Workspace) -> None:
    assert as_carol.get(address_of(ready)).status_code == 404
    assert as_carol.post(address_of(ready)).status_code == 404
    assert not retirements(ready)


def test_nobody_may_not(as_nobody: Client, ready: Workspace) -> None:
    assert as_nobody.post(address_of(ready))["Location"].startswith("/login/")
    assert not retirements(ready)


def test_other_methods_are_refused(as_alice: Client, ready: Workspace) -> None:
    assert as_alice.delete(address_of(ready)).status_code == 405
