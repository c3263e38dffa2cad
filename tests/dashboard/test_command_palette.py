"""The command palette: to what a person may see by a few letters, no further."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import Team, User
from provisioner.dashboard.views.palette import places_for
from provisioner.engine.models import Operation
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.requests import workspace_create


def titles(user: User, text: str) -> list[str]:
    return [place.title for place in places_for(user, text=text)]


def test_a_few_letters_lead_to_a_workspace(
    as_alice: Client, workspace: Workspace
) -> None:
    page = as_alice.get("/palette/?q=HER").text

    assert f'href="/workspaces/{workspace.pk}/"' in page
    assert "workspace of alice, being created" in page
    assert "<html" in page


def test_htmx_gets_the_list_alone(as_alice: Client, workspace: Workspace) -> None:
    answer = as_alice.get("/palette/?q=her", headers={"HX-Request": "true"})

    assert "<html" not in answer.text
    assert f'href="/workspaces/{workspace.pk}/"' in answer.text
    assert "HX-Request" in answer["Vary"]


def test_a_stranger_finds_nothing_of_others(carol: User, workspace: Workspace) -> None:
    number = workspace.operations.get().pk

    assert titles(carol, "hers") == []
    assert titles(carol, str(number)) == []
    assert "Drift" not in titles(carol, "")


def test_an_administrator_finds_everything(admin: User, workspace: Workspace) -> None:
    operation = workspace.operations.get()

    assert titles(admin, "hers") == ["hers"]
    assert titles(admin, "alice") == ["hers"]
    assert f"Provision hers ({operation.pk})" in titles(admin, str(operation.pk))
    assert titles(admin, "audit") == ["Audit log"]


def test_ones_own_come_first(alice: User, workspace: Workspace) -> None:
    team = Team.objects.create(name="Rendering")
    mate = UserFactory.create(username="bob", team=team)
    alice.team = team
    alice.save()
    workspace_create(by=mate, template=workspace.template, name="a-hers")

    assert titles(alice, "hers") == ["hers", "a-hers"]
    assert "a-hers" not in titles(alice, ""), "of others only what is asked for"
    assert "Workspaces of my team" in titles(alice, "team")


def test_all_words_have_to_match(alice: User, workspace: Workspace) -> None:
    assert titles(alice, "her s") == ["hers"]
    assert titles(alice, "hers nowhere") == []


@pytest.mark.parametrize("text", ["\0", "%", "9" * 200, "¾", "²", "-1", "<b>"])
def test_whatever_is_typed_is_answered(text: str, as_alice: Client) -> None:
    answer = as_alice.get("/palette/", {"q": text})

    assert answer.status_code == 200
    assert "<b>" not in answer.text


def test_an_operation_is_found_by_its_number(alice: User, build: Operation) -> None:
    assert titles(alice, str(build.pk)) == [f"Build template main ({build.pk})"]


def test_it_takes_few_queries(
    alice: User,
    workspace: Workspace,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_max_num_queries(3):
        places_for(alice, text="7")
