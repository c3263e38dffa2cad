from __future__ import annotations

import datetime as dt
import re

import pytest
from django.test import Client
from django.utils import timezone

from provisioner.catalog.models import Snapshot, Template
from provisioner.workspaces.models import Workspace
from tests.support.factories import SnapshotFactory, TemplateFactory


@pytest.fixture
def address(snapshot: Snapshot) -> str:
    return f"/templates/{snapshot.template_id}/get/"


def test_a_button_that_sends_nothing_but_its_key_is_enough(
    as_alice: Client, address: str, snapshot: Snapshot
) -> None:
    answer = as_alice.post(address, {"request_key": "k1"})
    workspace = Workspace.objects.get()
    assert answer["Location"] == f"/workspaces/{workspace.pk}/"
    assert workspace.owner.username == "alice"
    assert workspace.name == "alice-main"
    assert workspace.snapshot == snapshot
    assert workspace.purpose == Workspace.Purpose.DEVELOPMENT
    assert not workspace.wants_reconcile


def test_every_choice_is_heard(
    as_alice: Client, address: str, snapshot: Snapshot
) -> None:
    SnapshotFactory.create(template=snapshot.template, change=200)
    as_alice.post(
        address,
        {
            "name": "nightly",
            "purpose": "build",
            "snapshot": snapshot.pk,
            "wants_reconcile": "on",
        },
    )
    workspace = Workspace.objects.get()
    assert workspace.name == "nightly"
    assert workspace.purpose == Workspace.Purpose.BUILD
    assert workspace.snapshot == snapshot
    assert workspace.wants_reconcile


def test_a_lease_is_asked_for_in_days(as_alice: Client, address: str) -> None:
    as_alice.post(address, {"lease_days": "3"})

    workspace = Workspace.objects.get()
    assert workspace.expires_at is not None
    left = workspace.expires_at - timezone.now()
    assert dt.timedelta(days=2, hours=23) < left <= dt.timedelta(days=3)


@pytest.mark.parametrize(("days", "status"), [("3000", 409), ("0", 422), ("x", 422)])
def test_a_lease_that_cannot_be_had_is_said_at_the_lease(
    as_alice: Client, address: str, days: str, status: int
) -> None:
    answer = as_alice.post(address, {"lease_days": days})

    assert answer.status_code == status
    assert answer.context["form"].errors["lease_days"]
    assert not Workspace.objects.exists()


def test_the_form_shows_what_one_gets(
    as_alice: Client, address: str, snapshot: Snapshot
) -> None:
    page = as_alice.get(address).text
    assert "1 file at change" in page
    assert f"Change {snapshot.change}, built, built " in page
    assert "Latest (recommended)" in page


def test_a_double_click_is_one_workspace(as_alice: Client, address: str) -> None:
    first = as_alice.post(address, {"request_key": "k1"})
    second = as_alice.post(address, {"request_key": "k1"})
    assert first["Location"] == second["Location"]
    assert Workspace.objects.count() == 1


def test_every_form_has_a_key_of_its_own(as_alice: Client, address: str) -> None:
    find = re.compile(r'name="request_key" value="([0-9a-f-]{36})"')
    first, second = (find.findall(as_alice.get(address).text) for _ in range(2))
    assert set(first).isdisjoint(second)


def test_going_back_to_a_form_that_worked_gets_a_new_key(
    as_alice: Client, address: str
) -> None:
    as_alice.post(address, {"request_key": "k1", "name": "one"})
    answer = as_alice.post(address, {"request_key": "k1", "name": "two"})
    assert answer.status_code == 409
    assert "already got a workspace with this form" in answer.text
    assert 'value="k1"' not in answer.text
    assert 'value="two"' in answer.text


def test_a_taken_name_is_said_at_the_name(
    as_carol: Client, address: str, workspace: Workspace
) -> None:
    answer = as_carol.post(address, {"name": "hers"})
    assert answer.status_code == 409
    assert "The name “hers” is taken" in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert Workspace.objects.count() == 1


def test_a_name_that_is_none_is_said_at_the_name(
    as_alice: Client, address: str
) -> None:
    answer = as_alice.post(address, {"name": "Not a name"})
    assert answer.status_code == 422
    assert "Use 1 to 40 lower-case letters" in answer.text
    assert not Workspace.objects.exists()


def test_without_uid_the_refusal_is_read(as_newcomer: Client, address: str) -> None:
    answer = as_newcomer.post(address)
    assert answer.status_code == 409
    assert "has no uid and gid" in answer.text
    assert not Workspace.objects.exists()


def test_without_a_snapshot_the_refusal_is_read(
    as_alice: Client, template: Template
) -> None:
    address = f"/templates/{template.pk}/get/"
    page = as_alice.get(address).text
    assert "no published snapshot yet" in page
    assert "disabled" in page
    answer = as_alice.post(address)
    assert answer.status_code == 409
    assert "has no published snapshot yet" in answer.text


def test_a_snapshot_that_went_away_is_no_choice(
    as_alice: Client, address: str, snapshot: Snapshot
) -> None:
    Snapshot.objects.update(deleted_at=timezone.now())
    answer = as_alice.post(address, {"snapshot": snapshot.pk})
    assert answer.status_code == 422
    assert "no longer exists" in answer.text


def test_a_snapshot_of_another_template_is_no_choice(
    as_alice: Client, address: str
) -> None:
    other = SnapshotFactory.create(template=TemplateFactory.create(name="other"))
    assert as_alice.post(address, {"snapshot": other.pk}).status_code == 422


def test_nobody_gets_nothing(as_nobody: Client, address: str) -> None:
    assert as_nobody.post(address)["Location"].startswith("/login/")
    assert not Workspace.objects.exists()


def test_an_unknown_template_is_not_found(as_alice: Client) -> None:
    assert as_alice.get("/templates/999999/get/").status_code == 404


def test_other_methods_are_refused(as_alice: Client, address: str) -> None:
    assert as_alice.delete(address).status_code == 405
