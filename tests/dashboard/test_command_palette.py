"""The command palette: to what a person may see by a few letters, no further."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import Team, User
from provisioner.dashboard.views.palette import places_for
from provisioner.engine.models import Operation
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.behind import known_to_be_behind
from tests.support.browsers import browser_of
from tests.support.factories import (
    MirrorFactory,
    SandboxFactory,
    SnapshotFactory,
    UserFactory,
)
from tests.support.requests import workspace_create
from tests.support.workspaces import end


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
    assert titles(admin, "alice") == ["hers", "alice"]
    assert f"Provision hers ({operation.pk})" in titles(admin, str(operation.pk))
    assert titles(admin, "audit") == ["Audit log"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("advice", "Storage advice"),
        ("protocol", "Storage advice"),
        ("support matrix", "Support matrix"),
        ("drill", "Disaster drills"),
        ("checkpoint", "Checkpoints"),
        ("verified arch", "Verified archives"),
        ("p4 verify", "Verified archives"),
        ("qualification", "Qualification"),
        ("benchmark", "Qualification"),
        ("sandboxes", "Sandboxes"),
    ],
)
def test_every_page_of_the_sidebar_is_found_by_its_name(
    text: str, title: str, admin: User, carol: User
) -> None:
    assert title in titles(admin, text)
    assert titles(carol, text) == [], "she may not open it"


def test_a_page_is_found_once(admin: User) -> None:
    found = [place.url for place in places_for(admin, text="s")]
    assert len(found) == len(set(found)) > 20


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
    with django_assert_max_num_queries(5):
        places_for(alice, text="7")
    with django_assert_max_num_queries(5):
        places_for(alice, text="@7")
    with django_assert_max_num_queries(6):
        places_for(alice, text="retire")


def test_a_sandbox_and_what_can_be_done_with_it_are_found_by_its_owner(
    alice: User,
) -> None:
    bob = UserFactory.create(username="bob")
    SandboxFactory.create(owner=alice, name="case-4711", state="stopped")

    assert "case-4711" in titles(alice, "4711")
    assert "Start the sandbox case-4711" in titles(alice, "start case")
    assert "Retire the sandbox case-4711" in titles(alice, "retire")
    assert not [title for title in titles(bob, "4711") if "case" in title]
    assert not [title for title in titles(bob, "retire") if "case" in title]


def test_templates_come_first_and_the_first_is_marked(
    as_alice: Client, alice: User, workspace: Workspace
) -> None:
    workspace_create(by=alice, template=workspace.template, name="main-2")

    mirror = MirrorFactory.create(template=workspace.template)

    assert titles(alice, "main") == ["main", "main-2", mirror.name]
    part = as_alice.get("/palette/?q=main", headers={"HX-Request": "true"}).text
    assert part.count('aria-selected="true"') == 1
    assert part.index('aria-selected="true"') < part.index("main-2")
    assert "aria-selected" not in as_alice.get("/palette/?q=main").text


def test_people_and_sites_are_for_administrators(
    admin: User, alice: User, workspace: Workspace
) -> None:
    site = workspace.site

    assert titles(admin, site.name) == [site.name]
    assert titles(alice, site.name) == []
    assert "alice" in titles(admin, "alice")
    assert "alice" not in titles(alice, "alice")


# --- what contains a change


def kinds(user: User, text: str) -> dict[str, str]:
    return {place.title: place.kind for place in places_for(user, text=text)}


def test_a_change_leads_to_what_contains_it(
    alice: User, carol: User, workspace: Workspace
) -> None:
    known_to_be_behind(workspace.snapshot, "bob")
    newer = SnapshotFactory.create(template=workspace.template, change=101)

    assert kinds(alice, "@101") == {
        "main": "template, a snapshot at change 101 contains @101"
    }
    workspace_create(
        by=alice, template=workspace.template, name="newer", snapshot=newer
    )
    assert kinds(alice, " @101 ")["newer"] == "workspace at change 101, contains it"
    assert "newer" not in kinds(carol, "@101")
    assert kinds(alice, "@102") == {}, "nothing of it is in the view"


def test_a_change_that_no_snapshot_has_says_so(
    alice: User, workspace: Workspace
) -> None:
    known_to_be_behind(workspace.snapshot, "bob")

    said = "template, no snapshot contains @101 yet"
    assert kinds(alice, "@101") == {"main": said}


def test_a_change_from_before_a_template_was_followed_is_not_certain(
    as_alice: Client, alice: User, workspace: Workspace
) -> None:
    assert kinds(alice, "@99") == {
        "main": "template, a snapshot at change 100; whether its view has @99 is "
        "unknown",
        "hers": "workspace at change 100, is as new",
    }
    assert kinds(alice, "@101") == {}
    page = as_alice.get("/palette/", {"q": "@101"}).text
    assert "is known to contain change 101" in page


# --- actions by words


def places(user: User, text: str) -> dict[str, str]:
    return {place.title: place.url for place in places_for(user, text=text)}


def test_a_verb_and_a_name_lead_to_the_page_that_asks(
    as_alice: Client, alice: User, ready: Workspace
) -> None:
    address = f"/workspaces/{ready.pk}/"

    assert next(iter(places(alice, "retire her"))) == "Retire hers"
    assert places(alice, "Retire hers")["Retire hers"] == f"{address}retire/"
    assert places(alice, "extend hers")["Extend hers"] == f"{address}extend/"
    assert places(alice, "ret")["Retire hers"] == f"{address}retire/"
    assert as_alice.get(f"{address}extend/").status_code == 200
    assert places(alice, "restore hers") == {}, "it is not in the trash"


def test_what_is_in_the_trash_can_be_restored_or_purged(
    alice: User, ready: Workspace
) -> None:
    end(workspace_retire(by=alice, workspace=ready), Operation.State.SUCCEEDED)
    ready.refresh_from_db()
    set_workspace_state(ready, Workspace.State.TRASHED)

    assert list(places(alice, "restore")) == ["Restore hers"]
    address = f"/workspaces/{ready.pk}/purge/"
    assert places(alice, "purge hers")["Purge hers"] == address
    assert "Retire hers" not in places(alice, "retire")


def test_verbs_are_for_what_somebody_may_change(
    admin: User, carol: User, ready: Workspace
) -> None:
    assert "Retire hers" not in places(carol, "retire hers")
    assert "Retire hers" in places(admin, "retire hers")
    assert "Retire hers" not in places(admin, "retire"), "only where it is named"
    none = browser_of(carol).get("/palette/?q=Retire+hers").text
    assert "You have nothing called “hers” to retire." in none
    assert (
        "You have nothing to retire."
        in browser_of(carol).get("/palette/?q=retire").text
    )
