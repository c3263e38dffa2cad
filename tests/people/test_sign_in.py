from __future__ import annotations

import datetime as dt

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from provisioner.accounts.attempts import BY_NAME_AND_ADDRESS
from provisioner.accounts.models import ApiToken, Session, User
from provisioner.accounts.tokens import token_create
from provisioner.people.sweeps import sweep_sessions
from tests.support.browsers import Answer
from tests.support.factories import PASSWORD


def test_signing_in_leads_to_my_workspaces(as_nobody: Client, alice: User) -> None:
    answer = as_nobody.post("/login/", {"username": "alice", "password": PASSWORD})
    assert answer.status_code == 302
    assert answer["Location"] == "/"


def test_signing_in_leads_back_to_where_one_was(as_nobody: Client, alice: User) -> None:
    page = as_nobody.get("/templates/")["Location"]
    answer = as_nobody.post(
        page, {"username": "alice", "password": PASSWORD, "next": "/templates/"}
    )
    assert answer["Location"] == "/templates/"


def test_signing_in_leads_to_no_other_site(as_nobody: Client, alice: User) -> None:
    answer = as_nobody.post(
        "/login/",
        {"username": "alice", "password": PASSWORD, "next": "https://evil.example/"},
    )
    assert answer["Location"] == "/"


def test_a_wrong_password_says_so(as_nobody: Client, alice: User) -> None:
    answer = as_nobody.post("/login/", {"username": "alice", "password": "wrong"})
    assert "enter a correct username and password" in answer.text
    assert 'role="alert"' in answer.text


def test_who_has_signed_in_is_not_asked_again(as_alice: Client) -> None:
    assert as_alice.get("/login/")["Location"] == "/"


def test_a_polling_page_whose_session_ended_reloads(as_nobody: Client) -> None:
    answer = as_nobody.get("/", headers={"HX-Request": "true"}, follow=True)
    assert answer["HX-Refresh"] == "true"


def test_signing_out_needs_a_post(as_alice: Client) -> None:
    assert as_alice.get("/logout/").status_code == 405
    assert as_alice.post("/logout/")["Location"] == "/login/"
    assert as_alice.get("/").status_code == 302


# --- another password

NEW = "a-quite-long-new-one"


def changed(browser: Client, *, old: str = PASSWORD, **more: str) -> Answer:
    form = {"old_password": old, "new_password1": NEW, "new_password2": NEW}
    return browser.post("/me/password/", {**form, **more})


def test_a_new_password_offers_to_revoke_tokens(as_alice: Client, alice: User) -> None:
    assert "Revoke my API tokens" not in as_alice.get("/me/password/").text
    token_create(by=alice)
    assert "Revoke my API tokens" in as_alice.get("/me/password/").text

    changed(as_alice)
    assert ApiToken.objects.count() == 1
    answer = changed(as_alice, old=NEW, revokes_tokens="on")

    assert answer["Location"] == "/me/"
    assert not ApiToken.objects.exists()
    assert "Tokens revoked: 1." in as_alice.get("/me/").text
    alice.refresh_from_db()
    assert alice.check_password(NEW)


def test_a_new_password_ends_other_sessions(alice: User) -> None:
    mine, stolen = Client(), Client()
    for browser in (mine, stolen):
        browser.force_login(alice)

    changed(mine)

    assert mine.get("/").status_code == 200
    assert stolen.get("/").status_code == 302


def test_a_session_is_no_place_to_guess_the_password(
    as_alice: Client, alice: User
) -> None:
    for _ in range(BY_NAME_AND_ADDRESS):
        assert changed(as_alice, old="wrong").status_code == 422

    assert "Too many failed attempts" in changed(as_alice).text
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)


def test_the_administration_has_no_other_page_for_it(as_admin: Client) -> None:
    assert as_admin.get("/admin/password_change/")["Location"] == "/me/password/"


def test_who_sets_anothers_password_is_offered_their_tokens(
    as_admin: Client, alice: User
) -> None:
    page = f"/admin/accounts/user/{alice.pk}/password/"
    form = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    said = "API tokens of alice are still valid"
    assert said not in as_admin.post(page, form, follow=True).text

    token_create(by=alice)

    shown = as_admin.post(page, form, follow=True).text
    assert said in shown
    assert "/tokens/everybody/?q=alice" in shown


def test_sessions_are_deleted_once_the_database_says_that_they_are_over(
    as_alice: Client, as_carol: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = as_carol.session.session_key
    hers = Session.objects.filter(pk=as_alice.session.session_key)
    hers.update(expire_date=F("expire_date") - dt.timedelta(days=366))
    ahead = timezone.now() + dt.timedelta(days=366)
    monkeypatch.setattr(timezone, "now", lambda: ahead)

    sweep_sessions(0)

    assert [session.pk for session in Session.objects.all()] == [kept]
