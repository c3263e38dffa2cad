"""Teams and roles by Perforce's groups, and the nightly sync that asks who is left."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import Settings

from provisioner.accounts.models import Session, Team, User
from provisioner.accounts.tokens import live_tokens, token_create
from provisioner.directory.actions.syncs import directory_sync
from provisioner.directory.models import DirectorySync
from provisioner.directory.sweeps import sweep_directory
from provisioner.identities.models import Identity
from tests.support.directory_people import is_in, sign_in
from tests.support.perforce_people import ADMINISTRATORS, PASSWORD, PerforcePeople

State = DirectorySync.State


@pytest.fixture
def people(perforce: PerforcePeople) -> PerforcePeople:
    """Three people who have signed in."""
    for name in ("erin", "frank", "grace"):
        perforce.person(name)
        assert is_in(sign_in(name, PASSWORD)[0])
    return perforce


def account(name: str) -> User:
    return User.objects.get(username=name)


def done_to(sync: DirectorySync) -> dict[str, str]:
    return {
        change.account.username: change.action
        for change in sync.changes.select_related("account")
    }


def test_groups_decide_team_and_role_at_a_sign_in(perforce: PerforcePeople) -> None:
    team = Team.objects.create(name="Rendering")
    perforce.person("erin")
    perforce.group("Shading", "erin")
    perforce.group("Rendering", subgroups=("Shading",))
    perforce.group(ADMINISTRATORS, "erin")
    sign_in("erin", PASSWORD)
    assert account("erin").team == team
    assert account("erin").is_administrator
    perforce.remove("group", ADMINISTRATORS)
    sign_in("erin", PASSWORD)
    assert not account("erin").is_administrator


def test_nothing_changes_while_nothing_does(people: PerforcePeople) -> None:
    sync = directory_sync()
    assert (sync.state, sync.accounts_known) == (State.DONE, 3)
    assert done_to(sync) == {}


def test_who_is_gone_loses_sessions_and_tokens(people: PerforcePeople) -> None:
    browser, _ = sign_in("erin", PASSWORD)
    token_create(by=account("erin"))
    token_create(by=account("frank"))
    people.remove("user", "erin")

    sweep_directory()

    sync = DirectorySync.objects.get()
    assert sync.state == State.DONE
    assert done_to(sync) == {"erin": "close"}
    assert sync.changes.get().sentence == "Is gone from Perforce."
    assert not account("erin").is_active
    assert browser.get("/trash/").status_code == 302
    assert not Session.objects.filter(account=account("erin")).exists()
    assert [token.user.username for token in live_tokens()] == ["frank"]
    # Whoever is there again gets the account back.
    people.person("erin")
    assert is_in(sign_in("erin", PASSWORD)[0])


def test_teams_roles_and_names_follow(people: PerforcePeople) -> None:
    team = Team.objects.create(name="Rendering")
    people.group(ADMINISTRATORS, "erin")
    people.group("Rendering", "frank")
    people.person("grace", Email="new@example.com")

    assert set(done_to(directory_sync()).values()) == {"update"}

    assert account("erin").is_administrator
    assert account("frank").team == team
    assert account("grace").email == "new@example.com"
    people.remove("group", ADMINISTRATORS)
    assert done_to(directory_sync()) == {"erin": "take_role"}


def test_a_server_with_nobody_left_closes_nobody(people: PerforcePeople) -> None:
    for name in ("erin", "frank", "grace"):
        people.remove("user", name)
    sync = directory_sync()
    assert sync.state == State.ASKS
    assert "Perforce has none of 3 people any more" in sync.message
    assert account("erin").is_active


@pytest.mark.parametrize("trouble", ["away", "renamed", "not named", "password"])
def test_a_server_that_cannot_be_asked_closes_nobody(
    trouble: str, people: PerforcePeople, settings: Settings
) -> None:
    people.remove("user", "erin")
    if trouble == "away":
        people.row.p4port = "127.0.0.1:9"
    elif trouble == "renamed":
        people.row.name = "renamed"
    elif trouble == "not named":
        settings.SECRET_HOSTS = ["perforce.example.com"]
    else:
        settings.SITE_SECRET = lambda name, *, key: "changed"
    people.row.save()
    assert directory_sync().state == State.FAILED
    assert account("erin").is_active


def test_accounts_of_others_are_never_touched(
    people: PerforcePeople, alice: User, carol: User
) -> None:
    Identity.objects.create(account=carol, issuer="https://login.example", subject="7")
    directory_sync()
    assert account("alice").is_active
    assert account("carol").is_active


def test_the_page_says_whom_it_asks_and_whom_it_cannot(
    people: PerforcePeople, as_admin: Client, settings: Settings
) -> None:
    assert "disabled in Perforce" in as_admin.get("/people/directory/").text
    settings.OIDC_ISSUER, settings.OIDC_NAME = "https://login.example", "Login"
    assert (
        "not signed in with Login for 90 days"
        in as_admin.get("/people/directory/").text
    )
    settings.OIDC_ABSENT_DAYS = 0
    said = "Login cannot be asked who has left"
    assert said in as_admin.get("/people/directory/").text
    settings.OIDC_ISSUER = ""
    assert said not in as_admin.get("/people/directory/").text
