from __future__ import annotations

from django.test import Client

from provisioner.workspaces.models import Workspace


def address_of(workspace: Workspace) -> str:
    return f"/workspaces/{workspace.pk}/retry/"


def test_a_failed_one_goes_on(as_alice: Client, failed: Workspace) -> None:
    answer = as_alice.post(address_of(failed))
    assert answer["Location"] == f"/workspaces/{failed.pk}/"
    failed.refresh_from_db()
    assert failed.state == Workspace.State.PROVISIONING


def test_one_that_has_not_failed_is_left_alone(
    as_alice: Client, ready: Workspace
) -> None:
    answer = as_alice.post(address_of(ready), follow=True)
    assert "has not failed, so there is nothing to retry" in answer.text
    ready.refresh_from_db()
    assert ready.state == Workspace.State.READY


def test_a_second_click_says_that_it_is_under_way(
    as_alice: Client, failed: Workspace
) -> None:
    as_alice.post(address_of(failed))
    answer = as_alice.post(address_of(failed), follow=True)
    assert "is being created" in answer.text
    assert failed.operations.count() == 2


def test_a_check_changes_nothing(as_alice: Client, failed: Workspace) -> None:
    assert as_alice.get(address_of(failed)).status_code == 405


def test_an_administrator_may(as_admin: Client, failed: Workspace) -> None:
    as_admin.post(address_of(failed))
    failed.refresh_from_db()
    assert failed.state == Workspace.State.PROVISIONING


def test_a_stranger_may_not(as_carol: Client, failed: Workspace) -> None:
    assert as_carol.post(address_of(failed)).status_code == 404
    failed.refresh_from_db()
    assert failed.state == Workspace.State.FAILED


def test_nobody_may_not(as_nobody: Client, failed: Workspace) -> None:
    assert as_nobody.post(address_of(failed))["Location"].startswith("/login/")
