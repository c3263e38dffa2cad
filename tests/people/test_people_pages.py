"""Users, teams and quotas: what administrators see and give."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from provisioner.accounts.models import Team, User
from provisioner.accounts.tokens import token_create
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot
from provisioner.identities.models import Identity
from provisioner.lib.refusals import NotAllowed
from provisioner.notify.actions.subscriptions import template_subscribe
from provisioner.people.actions.accounts import account_update
from provisioner.workspaces.models import Workspace
from tests.support.browsers import post, table
from tests.support.factories import UserFactory

PEOPLE = "/people/"
NO_LIMIT = {"workspaces": "none", "space": "none"}


@pytest.fixture
def rendering(alice: User) -> Team:
    alice.team = Team.objects.create(name="Rendering", max_workspaces=10)
    alice.save()
    return alice.team


def changes(account: User | Team) -> list[dict[str, object]]:
    kind = "account" if isinstance(account, User) else "team"
    events = Event.objects.filter(kind=f"{kind}_changed", subject_id=account.pk)
    return list(events.order_by("pk").values_list("data", flat=True))


def test_the_list_says_who_has_what(
    as_admin: Client, ready: Workspace, alice: User, ci: User, rendering: Team
) -> None:
    Workspace.objects.filter(pk=ready.pk).update(unique_bytes=3 * 2**30)
    UserFactory.create(username="closed", is_active=False)

    rows = table(as_admin, f"{PEOPLE}?as=csv&sort=-workspaces")

    roles = {row["name"]: row["role"] for row in rows}
    assert (roles["alice"], roles["ci"]) == ("developer", "machine")
    assert roles["admin"] == "administrator"
    assert "closed" not in roles
    first = rows[0]
    assert first["name"] == "alice"
    assert (first["team"], first["workspaces"]) == ("Rendering", "1")
    assert first["unique_bytes"] == str(3 * 2**30)
    assert "closed" in as_admin.get(f"{PEOPLE}?gone=1").text
    assert "alice" not in as_admin.get(f"{PEOPLE}?role=machine").text
    assert "alice" in as_admin.get(f"{PEOPLE}?team={rendering.pk}&q=ali").text
    teams = as_admin.get("/teams/").text
    assert "<span>1 of 10</span>" in teams
    assert ">3 GiB</data>" in teams


def test_the_lists_take_as_many_queries_for_many(
    as_admin: Client,
    ready: Workspace,
    rendering: Team,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    UserFactory.create_batch(5, team=rendering)
    Team.objects.create(name="Audio")
    # session, user, findings, maintenance, savepoints aside: how many, which, they,
    # their teams to choose from in filters
    with django_assert_num_queries(9):
        as_admin.get(PEOPLE)
    # what each has that is in a team
    with django_assert_num_queries(9):
        as_admin.get("/teams/")


def test_a_person_has_a_page(as_admin: Client, ready: Workspace, alice: User) -> None:
    token_create(by=alice, name="My script")
    template_subscribe(by=alice, template=ready.template)

    page = as_admin.get(f"{PEOPLE}{alice.pk}/").text

    for said in ("Developer", "hers", "My script", "Subscribed to mails"):
        assert said in page
    for link in ("/audit-log/?actor=alice", "/operations/?by=alice", "?owner=alice"):
        assert link in page
    [row] = table(as_admin, f"{PEOPLE}{alice.pk}/?as=csv&q=hers&sort=-of_its_own")
    assert row["name"] == "hers"
    preview = post(as_admin, f"{PEOPLE}{alice.pk}/", do="retire", chosen=[ready.pk])
    assert "Retire 1 workspace?" in preview.content.decode()
    assert as_admin.get(f"{PEOPLE}999999/").status_code == 404


@pytest.mark.parametrize(
    ("issuer", "said"),
    [
        ("", "password kept here"),
        ("perforce:main", "Perforce, as alice.p4"),
        ("https://login.example.com", "Example, as alice.p4"),
        ("perforce:renamed", "which no setting names: nobody can"),
    ],
)
def test_a_page_says_how_somebody_signs_in(
    issuer: str, said: str, as_admin: Client, alice: User, settings: Settings
) -> None:
    settings.P4_SIGN_IN_SERVER = "main"
    settings.OIDC_ISSUER, settings.OIDC_NAME = "https://login.example.com", "Example"
    if issuer:
        Identity.objects.create(account=alice, issuer=issuer, subject="alice.p4")
    assert said in as_admin.get(f"{PEOPLE}{alice.pk}/").text


def test_team_quota_and_role_are_given_with_an_event(
    as_admin: Client, alice: User, rendering: Team
) -> None:
    audio = Team.objects.create(name="Audio")
    edit = f"{PEOPLE}{alice.pk}/edit/"
    assert '<option value="developer" selected>' in as_admin.get(edit).text

    same = {"uid": alice.uid, "gid": alice.gid, "email": alice.email}
    sent = {**same, "standing": "administrator", "team": audio.pk}
    sent |= {"workspaces": "limit", "max_workspaces": 4, "space": "limit"}
    answer = as_admin.post(edit, {**sent, "max_unique_bytes": "2 GiB"})

    assert answer.status_code == 302
    alice.refresh_from_db()
    assert alice.is_administrator
    assert alice.is_superuser  # as who gave it
    assert changes(alice)[-1] == {
        "team": {"before": rendering.pk, "after": audio.pk},
        "max_workspaces": {"before": None, "after": 4},
        "max_unique_bytes": {"before": None, "after": 2**31},
        "is_staff": {"before": False, "after": True},
        "is_superuser": {"before": False, "after": True},
    }
    page = as_admin.get(edit).text
    assert page.count('<option value="limit" selected>') == 2
    # What the form showed may stay beside "No limit".
    sent = {"standing": "machine", "team": "", **NO_LIMIT, "max_workspaces": 4}
    as_admin.post(edit, sent)
    alice.refresh_from_db()
    assert (alice.is_staff, alice.is_superuser, alice.is_service) == (0, 0, 1)
    assert (alice.team, alice.max_workspaces, alice.max_unique_bytes) == (None,) * 3


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"standing": "developer"}, 409),
        ({"standing": "king"}, 422),
        ({"workspaces": "", "space": "none"}, 422),
        ({"workspaces": "none", "space": ""}, 422),
        ({"workspaces": "limit"}, 422),
        ({"workspaces": "same", "max_workspaces": 3}, 422),
        ({"workspaces": "limit", "max_workspaces": -1}, 422),
        ({"workspaces": "limit", "max_workspaces": 2**40}, 422),
        ({"space": "limit", "max_unique_bytes": "much"}, 422),
        ({"space": "limit", "max_unique_bytes": "9" * 30}, 422),
        ({"team": 999}, 422),
    ],
)
def test_what_cannot_be_is_refused(
    sent: dict[str, object], status: int, as_admin: Client, admin: User
) -> None:
    """Nobody takes their own role away: an administrator always remains."""
    usual = {"standing": "administrator", **NO_LIMIT}
    answer = as_admin.post(f"{PEOPLE}{admin.pk}/edit/", {**usual, **sent})
    assert answer.status_code == status
    admin.refresh_from_db()
    assert admin.is_administrator


def test_who_keeps_no_rows_by_hand_gives_and_takes_that_not(
    admin: User, alice: User
) -> None:
    deputy = UserFactory.create(is_staff=True)
    account_update(by=deputy, account=alice, standing="administrator")
    alice.refresh_from_db()
    assert (alice.is_staff, alice.is_superuser) == (True, False)
    with pytest.raises(NotAllowed):
        account_update(by=deputy, account=admin, standing="developer")


def test_many_get_a_team_with_one_confirmation(
    as_admin: Client, alice: User, carol: User, rendering: Team
) -> None:
    chosen = {"do": "team", "chosen": [alice.pk, carol.pk]}
    assert "From " not in as_admin.post(PEOPLE, chosen).text, "no team is usual"
    empty = as_admin.post(PEOPLE, {**chosen, "step": "sure", "team": ""})
    assert (empty.status_code, "This field is required." in empty.text) == (422, True)
    shown = as_admin.post(PEOPLE, {**chosen, "step": "again", "team": rendering.pk})
    assert "From no team to the team Rendering." in shown.text
    assert "Nothing changes." in shown.text
    assert list(rendering.members.all()) == [alice]

    done = as_admin.post(
        PEOPLE, {**chosen, "step": "sure", "team": rendering.pk}, follow=True
    )
    assert "Changed: 2 accounts." in done.text
    assert {*rendering.members.all()} == {alice, carol}
    as_admin.post(PEOPLE, {**chosen, "step": "sure", "team": "none"})
    assert not rendering.members.exists()


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({}, "Choose what changes."),
        ({"workspaces": "limit"}, "Say how much."),
        ({"max_workspaces": 3}, "Choose what changes."),
        ({"space": "limit", "max_unique_bytes": "much"}, "Write a size such as"),
        (
            {"space": "limit", "max_unique_bytes": "9999999 TiB"},
            "No file system is that large",
        ),
    ],
)
def test_a_quota_that_is_not_said_changes_nothing(
    as_admin: Client, alice: User, sent: dict[str, object], said: str
) -> None:
    User.objects.filter(pk=alice.pk).update(max_workspaces=7)
    usual = {"workspaces": "same", "space": "same"}
    told = {"do": "quota", "chosen": [alice.pk], "step": "sure", **usual, **sent}

    answer = as_admin.post(PEOPLE, told, follow=True)

    assert said in answer.text
    alice.refresh_from_db()
    assert (alice.max_workspaces, alice.max_unique_bytes) == (7, None)


def test_many_get_a_quota_of_which_nothing_else_changes(
    as_admin: Client, alice: User, carol: User
) -> None:
    User.objects.filter(pk=alice.pk).update(max_workspaces=7)
    sent = {"do": "quota", "chosen": [alice.pk, carol.pk], "workspaces": "same"}
    sent |= {"space": "limit", "max_unique_bytes": "2 GiB"}

    shown = as_admin.post(PEOPLE, {**sent, "step": "again"}).text
    assert "Up to 7 and 2 GiB instead of up to 7 and any space." in shown
    as_admin.post(PEOPLE, {**sent, "step": "sure"})

    alice.refresh_from_db()
    assert (alice.max_workspaces, alice.max_unique_bytes) == (7, 2**31)
    sent |= {"workspaces": "none", "space": "same", "max_unique_bytes": ""}
    shown = as_admin.post(PEOPLE, {**sent, "step": "again"}).text
    assert "Any number and 2 GiB instead of up to 7 and 2 GiB." in shown
    as_admin.post(PEOPLE, {**sent, "step": "sure"})
    alice.refresh_from_db()
    assert (alice.max_workspaces, alice.max_unique_bytes) == (None, 2**31)


def test_a_limit_is_asked_for_and_read_only_where_one_is_chosen(
    as_admin: Client, alice: User
) -> None:
    """Pages hide it while “No limit” is chosen, whatever was typed there before."""
    sent = {"do": "quota", "chosen": [alice.pk], "step": "sure"}
    shown = as_admin.post(PEOPLE, {"do": "quota", "chosen": [alice.pk]}).text
    assert shown.count("data-limit") == 2
    assert "optional" not in shown

    sent |= {"workspaces": "none", "max_workspaces": "3 or so"}
    sent |= {"space": "none", "max_unique_bytes": "much"}
    done = as_admin.post(PEOPLE, sent, follow=True)

    assert "Changed: 1 account." in done.text
    alice.refresh_from_db()
    assert (alice.max_workspaces, alice.max_unique_bytes) == (None, None)


def test_many_get_a_role_but_nobody_their_own(
    as_admin: Client, admin: User, alice: User
) -> None:
    sent = {"do": "role", "chosen": [alice.pk, admin.pk], "standing": "machine"}

    shown = as_admin.post(PEOPLE, {**sent, "step": "again"}).text
    assert "From developer to machine." in shown
    assert 'id="left-out"' in shown
    as_admin.post(PEOPLE, {**sent, "step": "sure"})

    alice.refresh_from_db()
    admin.refresh_from_db()
    assert (alice.is_service, admin.is_staff, admin.is_service) == (True, True, False)


def test_teams_are_made_and_changed(as_admin: Client, rendering: Team) -> None:
    unsaid = as_admin.post("/teams/new/", {"name": "Audio"})
    assert unsaid.status_code == 422
    assert unsaid.text.count("This field is required.") == 2
    taken = as_admin.post("/teams/new/", {"name": " Rendering ", **NO_LIMIT})
    assert taken.status_code == 409
    said = taken.context["form"].errors["name"]
    assert said == ["A team “Rendering” already exists."]
    sent = {"name": "Audio", **NO_LIMIT, "space": "limit", "max_unique_bytes": "1 TiB"}
    made = as_admin.post("/teams/new/", sent)
    assert made.status_code == 302
    assert Team.objects.get(name="Audio").max_unique_bytes == 2**40

    edit = f"/teams/{rendering.pk}/edit/"
    assert 'value="Rendering"' in as_admin.get(edit).text
    limit = {"workspaces": "limit", "max_workspaces": 20}
    as_admin.post(edit, {"name": "Rendering", **NO_LIMIT, **limit})
    assert changes(rendering) == [{"max_workspaces": {"before": 10, "after": 20}}]


def test_pooled_and_retired_ones_count_for_nobody(
    as_admin: Client, alice: User, retired: Workspace, snapshot: Snapshot
) -> None:
    page = as_admin.get(f"{PEOPLE}?q=alice").text
    assert "<span>0</span>" in page
