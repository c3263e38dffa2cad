"""Accounts from their making to their end, on pages, by administrators."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import Settings

from provisioner.accounts.models import ApiToken, User
from provisioner.accounts.tokens import token_create
from provisioner.audit_log.models import Event
from provisioner.lib.refusals import NotAllowed
from provisioner.people.actions.accounts import account_close, account_update
from provisioner.people.actions.passwords import account_set_password
from tests.support.browsers import browser_of
from tests.support.factories import PASSWORD, UserFactory
from tests.support.mail_server import BACKEND

FORM = {
    "username": "erin",
    "standing": "developer",
    "password": "a long pass phrase",
    "email": "erin@example.com",
    "p4_user": "erin.p4",
    "uid": "20042",
    "gid": "20000",
    "workspaces": "limit",
    "max_workspaces": "4",
    "space": "none",
}
NEW = "another long pass phrase"


def kinds(account: User) -> list[str]:
    events = Event.objects.filter(subject_kind="account", subject_id=account.pk)
    return list(events.order_by("pk").values_list("kind", flat=True))


def can_sign_in(account: User, password: str) -> bool:
    sent = {"username": account.username, "password": password}
    return Client().post("/login/", sent).status_code == 302


def test_an_account_is_made_in_one_form(as_admin: Client, admin: User) -> None:
    assert (
        '<a class="button button-primary" href="/people/new/"'
        in as_admin.get("/people/").text
    )
    answer = as_admin.post("/people/new/", FORM)

    erin = User.objects.get(username="erin")
    assert answer["Location"] == f"/people/{erin.pk}/"
    assert (erin.uid, erin.gid, erin.perforce_name) == (20042, 20000, "erin.p4")
    assert (erin.email, erin.max_workspaces) == ("erin@example.com", 4)
    assert can_sign_in(erin, FORM["password"])
    event = Event.objects.get(kind="account_made", subject_id=erin.pk)
    assert event.actor == admin


@pytest.mark.parametrize(
    ("changed", "status", "sentence"),
    [
        ({"uid": "0"}, 422, "greater than or equal to 1"),
        ({"gid": "0"}, 422, "greater than or equal to 1"),
        ({"gid": ""}, 409, "Give both uid and gid, or neither."),
        ({"username": "Alice"}, 409, "An account “Alice” already exists."),
        ({"username": "a b"}, 409, "Enter a valid username"),
        ({"password": "12345"}, 409, "This password is too short"),
        ({"p4_user": "-a"}, 409, "Give a name without spaces"),
        ({"email": "nowhere"}, 422, "Enter a valid email address"),
        ({"standing": "king"}, 422, "Select a valid choice"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_typed_is_lost(
    changed: dict[str, str], status: int, sentence: str, as_admin: Client, alice: User
) -> None:
    number = User.objects.count()
    answer = as_admin.post("/people/new/", {**FORM, **changed})
    assert answer.status_code == status
    assert sentence in answer.text
    assert not answer.context["form"].non_field_errors(), "it is said at the field"
    assert 'value="4"' in answer.text
    assert User.objects.count() == number


def test_without_a_password_nobody_signs_in_yet(as_admin: Client) -> None:
    as_admin.post("/people/new/", {**FORM, "password": ""})
    assert not can_sign_in(User.objects.get(username="erin"), "")


def test_uid_mail_and_perforce_user_are_changed(as_admin: Client, alice: User) -> None:
    edit = f"/people/{alice.pk}/edit/"
    assert f'value="{alice.uid}"' in as_admin.get(edit).text
    sent = {**FORM, "email": "a@example.com", "p4_user": "al"}
    as_admin.post(edit, {**sent, "uid": 31, "gid": 32})
    alice.refresh_from_db()
    assert (alice.uid, alice.gid, alice.p4_user) == (31, 32, "al")
    assert kinds(alice)[-1] == "account_changed"


def test_a_password_is_set_and_ends_sessions_and_tokens(
    as_admin: Client, as_alice: Client, alice: User
) -> None:
    token_create(by=alice)
    page = f"/people/{alice.pk}/password/"
    assert "Revoke their API tokens" in as_admin.get(page).text

    answer = as_admin.post(page, {"password": NEW, "revokes_tokens": "on"})

    assert answer["Location"] == f"/people/{alice.pk}/"
    assert "Tokens revoked: 1." in as_admin.get(f"/people/{alice.pk}/").text
    assert as_alice.get("/").status_code == 302
    assert can_sign_in(alice, NEW)
    assert not ApiToken.objects.exists()
    event = Event.objects.get(kind="account_changed", subject_id=alice.pk)
    assert (event.message, event.data) == ("Changed password.", {"password": None})


def test_a_password_that_is_guessed_is_refused(as_admin: Client, alice: User) -> None:
    answer = as_admin.post(f"/people/{alice.pk}/password/", {"password": "12345"})
    assert answer.status_code == 409
    assert can_sign_in(alice, PASSWORD)


def test_an_account_is_closed_after_a_question_and_reopened(
    as_admin: Client, as_alice: Client, alice: User
) -> None:
    close = f"/people/{alice.pk}/close/"
    assert "Its workspaces stay until their leases end." in as_admin.get(close).text
    alice.refresh_from_db()
    assert alice.is_active

    as_admin.post(close)

    assert as_alice.get("/").status_code == 302
    assert not can_sign_in(alice, PASSWORD)
    page = as_admin.get(f"/people/{alice.pk}/").text
    assert "the account is closed" in page
    assert "Reopen" in page
    as_admin.post(f"/people/{alice.pk}/reopen/")
    assert can_sign_in(alice, PASSWORD)


def test_nobody_closes_their_own_account(as_admin: Client, admin: User) -> None:
    assert "/close/" not in as_admin.get(f"/people/{admin.pk}/").text
    page = as_admin.post(f"/people/{admin.pk}/close/", follow=True).text
    assert "Ask another administrator" in page
    admin.refresh_from_db()
    assert admin.is_active


def test_who_keeps_no_rows_by_hand_becomes_nobody_who_does(admin: User) -> None:
    """No password, mail address, uid or end of theirs."""
    deputy = UserFactory.create(is_staff=True)
    with pytest.raises(NotAllowed):
        account_set_password(
            by=deputy, account=admin, password=NEW, revokes_tokens=False
        )
    with pytest.raises(NotAllowed):
        account_update(by=deputy, account=admin, email="mine@example.com")
    with pytest.raises(NotAllowed):
        account_close(by=deputy, account=admin)


@pytest.mark.parametrize("path", ["new/", "{}/password/", "{}/close/"])
def test_accounts_are_made_by_administrators_alone(
    path: str, as_carol: Client, as_nobody: Client, alice: User
) -> None:
    address = f"/people/{path.format(alice.pk)}"
    assert as_carol.get(address).status_code == 403
    assert as_carol.post(address, FORM).status_code == 403
    assert as_nobody.post(address, FORM).status_code == 302
    alice.refresh_from_db()
    assert alice.is_active
    assert alice.check_password(PASSWORD)


def test_a_mail_is_offered_where_one_arrives(
    alice: User, admin: User, settings: Settings
) -> None:
    page = f"/people/{alice.pk}/password/"
    offer = "Mail a link to choose one"
    browser = browser_of(admin)
    User.objects.filter(pk=alice.pk).update(email="alice@example.com")
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    assert offer not in browser.get(page).text
    refused = browser.post(page, {"mail": "1"}, follow=True).text
    assert "No mail can be sent to alice" in refused
    settings.EMAIL_BACKEND = BACKEND
    assert offer in browser.get(page).text
    User.objects.filter(pk=alice.pk).update(email="")
    assert offer not in browser.get(page).text
