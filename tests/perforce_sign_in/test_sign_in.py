"""Sign-in by a Perforce password or ticket, over real connections to the lab's p4d."""

from __future__ import annotations

import hashlib
import pwd
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.contrib.auth import SESSION_KEY
from django.test import Client
from pytest_django import Settings

from provisioner.accounts.attempts import BY_NAME_AND_ADDRESS
from provisioner.accounts.models import ApiToken, SignInAttempts, User
from provisioner.audit_log.models import Event
from provisioner.identities.models import Identity
from provisioner.identities.places import SIGN_INS_AT_A_TIME, place_to_ask
from provisioner.perforce_sign_in import actions
from tests.support.api_clients import token_for_password
from tests.support.directory_people import is_in, sign_in
from tests.support.factories import PASSWORD as LOCAL_PASSWORD
from tests.support.lab_perforce import lab_server
from tests.support.perforce_people import PASSWORD, PerforcePeople, people_of

WRONG = "enter a correct username and password"


def test_the_first_sign_in_makes_an_account(perforce: PerforcePeople) -> None:
    perforce.person("erin", FullName="Erin van Example")

    browser, answer = sign_in("erin", PASSWORD)

    assert answer["Location"] == "/"
    erin = User.objects.get(username="erin")
    assert browser.session[SESSION_KEY] == str(erin.pk)
    assert (erin.email, erin.first_name) == ("erin@example.com", "Erin van")
    assert (erin.last_name, erin.perforce_name) == ("Example", "erin")
    assert not erin.is_administrator
    assert not erin.has_usable_password()
    assert (erin.identity.issuer, erin.identity.subject) == ("perforce:people", "erin")
    assert Event.objects.get(kind="signed_in", actor=erin).via == "Perforce"
    # The second finds it.
    assert is_in(sign_in("erin", PASSWORD)[0])
    assert Identity.objects.count() == 1


def test_a_ticket_will_do_in_place_of_the_password(perforce: PerforcePeople) -> None:
    perforce.person("erin")
    ticket = perforce.ticket("erin")
    assert is_in(sign_in("erin", ticket)[0])
    assert ticket not in str(list(Event.objects.values()))
    # The user's own login goes on.
    assert perforce.has_login("erin")


@pytest.mark.parametrize("of", ["bob", "nobody", "erin, logged out", "a hash"])
def test_a_ticket_of_somebody_else_or_of_nobody_signs_nobody_in(
    of: str, perforce: PerforcePeople
) -> None:
    perforce.person("erin")
    perforce.person("bob")
    ticket = {
        "bob": lambda: perforce.ticket("bob"),
        "nobody": lambda: "0123456789ABCDEF" * 2,
        "erin, logged out": lambda: perforce.ticket("erin", ended=True),
        # What the server keeps of a password is no password.
        "a hash": lambda: _md5(PASSWORD),
    }[of]()
    browser, answer = sign_in("erin", ticket)
    assert not is_in(browser)
    assert WRONG in answer.text
    assert not User.objects.filter(username="erin").exists()


@pytest.mark.parametrize("secret", ["wrong", PASSWORD.upper(), " ", f"{PASSWORD}\0"])
def test_a_wrong_password_says_so(secret: str, perforce: PerforcePeople) -> None:
    perforce.person("erin")
    browser, _ = sign_in("erin", secret)
    assert not is_in(browser)
    assert not User.objects.filter(username="erin").exists()


@pytest.mark.parametrize("secret", ["", "anything"])
def test_who_needs_no_password_there_has_proven_nothing(
    secret: str, settings: Settings, tmp_path_factory: pytest.TempPathFactory, db: None
) -> None:
    with _another(settings, tmp_path_factory, "--security", "0") as open_server:
        open_server.person("erin", password="")
        assert not is_in(sign_in("erin", secret)[0])


def test_where_passwords_are_taken_as_they_are_no_ticket_is_made(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory, db: None
) -> None:
    with _another(settings, tmp_path_factory, "--security", "2") as server:
        server.person("erin")
        assert is_in(sign_in("erin", PASSWORD)[0])
        assert not is_in(sign_in("erin", "wrong")[0])
        assert not is_in(sign_in("erin", _md5(PASSWORD))[0])
        assert not server.has_login("erin")


@pytest.mark.parametrize("name", ["nobody-yet", "-a", "*", "er*", "erin#1", "erin "])
def test_a_name_that_perforce_does_not_know_makes_no_user_there(
    name: str, perforce: PerforcePeople
) -> None:
    """This server makes a user of whoever gives a command."""
    perforce.person("erin")
    before = perforce.users()
    answer = token_for_password(name, PASSWORD)
    assert answer.status_code == 401
    assert perforce.users() == before
    assert not Identity.objects.exists()


def test_our_own_user_and_programs_sign_nobody_in(perforce: PerforcePeople) -> None:
    perforce.person("replica", Type="service")
    assert not is_in(sign_in("replica", PASSWORD)[0])
    assert not is_in(sign_in("cloneyard", perforce.server.password)[0])


def test_a_token_is_given_for_a_name_and_password_there(
    perforce: PerforcePeople,
) -> None:
    perforce.person("erin")
    answer = token_for_password("erin", PASSWORD)
    assert answer.status_code == 201
    assert ApiToken.objects.get().user.username == "erin"
    assert Event.objects.get(kind="token_made").via == "Perforce"


# --- what Perforce wants besides


def test_a_second_factor_cannot_be_given_here(perforce: PerforcePeople) -> None:
    perforce.person("erin", AuthMethod="perforce+2fa")
    browser, answer = sign_in("erin", PASSWORD)
    assert not is_in(browser)
    assert "asks you for a second factor" in answer.text
    assert not SignInAttempts.objects.filter(count__gt=0).exists()
    _, answer = sign_in("erin", "wrong")
    assert WRONG in answer.text


def test_a_password_that_has_to_be_changed_is_named(perforce: PerforcePeople) -> None:
    perforce.person("erin")
    perforce.admin().run("admin", "resetpassword", "-u", "erin")
    browser, answer = sign_in("erin", PASSWORD)
    assert not is_in(browser)
    assert "wants a new password of you" in answer.text
    _, answer = sign_in("erin", "wrong")
    assert WRONG in answer.text


def test_who_is_locked_out_by_the_protections_is_told_so(
    perforce: PerforcePeople,
) -> None:
    perforce.person("erin")
    admin = perforce.admin()
    before = admin.fetch_protect()["Protections"]
    try:
        admin.save_protect({"Protections": ["super user cloneyard * //..."]})
        browser, answer = sign_in("erin", PASSWORD)
        assert not is_in(browser)
        assert "give you access to nothing" in answer.text
    finally:
        admin.save_protect({"Protections": before})
    assert is_in(sign_in("erin", PASSWORD)[0])


# --- accounts


@pytest.mark.parametrize("adopts", [False, True])
def test_an_account_of_that_name_is_adopted_only_where_settings_say_so(
    adopts: bool, perforce: PerforcePeople, alice: User, settings: Settings
) -> None:
    settings.P4_SIGN_IN_ADOPTS_ACCOUNTS = adopts
    perforce.person("alice")
    browser, answer = sign_in("alice", PASSWORD)
    assert is_in(browser) == adopts
    assert ("P4_SIGN_IN_ADOPTS_ACCOUNTS" in answer.text) == (not adopts)
    # Whoever knew the password of before does not get in beside Perforce.
    assert is_in(sign_in("alice", LOCAL_PASSWORD)[0]) == (not adopts)


def test_the_account_with_that_perforce_user_is_adopted_whatever_its_name(
    perforce: PerforcePeople, alice: User, settings: Settings
) -> None:
    settings.P4_SIGN_IN_ADOPTS_ACCOUNTS = True
    User.objects.filter(pk=alice.pk).update(p4_user="a.liddell")
    perforce.person("a.liddell")
    assert is_in(sign_in("a.liddell", PASSWORD)[0])
    assert Identity.objects.get().account == alice
    perforce.person("alice")
    browser, answer = sign_in("alice", PASSWORD)
    assert not is_in(browser)
    assert WRONG in answer.text or "There is an account" in answer.text
    assert Identity.objects.get().account == alice


def test_an_account_with_another_perforce_user_is_not_adopted_by_its_name(
    perforce: PerforcePeople, alice: User, settings: Settings
) -> None:
    settings.P4_SIGN_IN_ADOPTS_ACCOUNTS = True
    User.objects.filter(pk=alice.pk).update(p4_user="somebody-else")
    perforce.person("alice")
    browser, answer = sign_in("alice", PASSWORD)
    assert not is_in(browser)
    assert "There is an account “alice”" in answer.text
    assert not Identity.objects.exists()


@pytest.mark.parametrize("field", ["is_superuser", "is_service"])
def test_nobody_becomes_a_superuser_or_a_machine_by_name(
    field: str, perforce: PerforcePeople, alice: User, settings: Settings
) -> None:
    settings.P4_SIGN_IN_ADOPTS_ACCOUNTS = True
    User.objects.filter(pk=alice.pk).update(**{field: True})
    perforce.person("alice")
    browser, answer = sign_in("alice", PASSWORD)
    assert not is_in(browser)
    assert WRONG in answer.text


def test_uid_and_gid_come_from_the_host_and_not_from_another_account(
    perforce: PerforcePeople, monkeypatch: pytest.MonkeyPatch, alice: User
) -> None:
    entry = pwd.struct_passwd(("erin", "x", 4711, 4000, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwnam", lambda name: entry)
    perforce.person("erin")
    sign_in("erin", PASSWORD)
    erin = User.objects.get(username="erin")
    assert (erin.uid, erin.gid) == (4711, 4000)
    perforce.person("frank")
    browser, answer = sign_in("frank", PASSWORD)
    assert not is_in(browser)
    assert "belongs to the account “erin”" in answer.text
    assert not User.objects.filter(username="frank").exists()


def test_case_is_ignored_as_the_server_does(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory, db: None
) -> None:
    with _another(settings, tmp_path_factory, "-C1") as folding:
        folding.person("erin")
        assert is_in(sign_in("ERIN", PASSWORD)[0])
        assert is_in(sign_in("erin", PASSWORD)[0])
    assert Identity.objects.get().account.username == "erin"


def test_a_closed_account_is_not_let_in(perforce: PerforcePeople) -> None:
    perforce.person("erin")
    sign_in("erin", PASSWORD)
    User.objects.filter(username="erin").update(is_active=False)
    browser, answer = sign_in("erin", PASSWORD)
    assert not is_in(browser)
    assert "is closed" in answer.text


def test_a_password_of_perforce_is_changed_there(
    perforce: PerforcePeople, as_admin: Client
) -> None:
    perforce.person("erin")
    browser, _ = sign_in("erin", PASSWORD)
    assert "that of Perforce: change it there" in browser.get("/me/password/").text
    erin = User.objects.get(username="erin")
    form = {"password": "a-quite-long-new-one"}
    answer = as_admin.post(f"/people/{erin.pk}/password/", form)
    assert "The password of erin is that of Perforce" in answer.text


# --- the server, and none


def test_a_server_that_does_not_answer_is_said_and_local_passwords_work(
    perforce: PerforcePeople, alice: User
) -> None:
    perforce.person("erin")
    perforce.row.p4port = "127.0.0.1:9"
    perforce.row.save()
    browser, answer = sign_in("erin", PASSWORD)
    assert not is_in(browser)
    assert "Perforce does not answer" in answer.text
    assert not SignInAttempts.objects.filter(count__gt=0).exists()
    assert is_in(sign_in("alice", LOCAL_PASSWORD)[0])


def test_a_connection_that_is_dropped_says_so(perforce: PerforcePeople) -> None:
    perforce.person("erin")
    perforce.server.faults({"command": "login", "drop": "before"})
    _, answer = sign_in("erin", PASSWORD)
    assert "Perforce does not answer" in answer.text


def test_a_silent_server_is_not_waited_for_and_counts_no_attempt(
    perforce: PerforcePeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    perforce.person("erin")
    monkeypatch.setattr(actions, "ANSWERS_WITHIN_SECONDS", 1.0)
    perforce.server.faults({"command": "login", "latency_seconds": 30})
    began = time.monotonic()
    _, answer = sign_in("erin", PASSWORD)
    assert time.monotonic() - began < 25
    assert "Perforce does not answer" in answer.text
    assert not SignInAttempts.objects.filter(count__gt=0).exists()


def test_a_wrong_password_of_our_own_user_is_no_wrong_password_of_people(
    perforce: PerforcePeople, settings: Settings
) -> None:
    perforce.person("erin")
    settings.SITE_SECRET = lambda name, *, key: "changed"
    _, answer = sign_in("erin", PASSWORD)
    assert "Perforce could not look you up" in answer.text


def test_no_password_goes_to_a_host_that_is_not_named(
    perforce: PerforcePeople, settings: Settings
) -> None:
    perforce.person("erin")
    settings.SECRET_HOSTS = ["perforce.example.com"]
    browser, answer = sign_in("erin", PASSWORD)
    assert not is_in(browser)
    assert "Perforce could not look you up" in answer.text


def test_without_a_row_of_that_name_nobody_gets_in(
    perforce: PerforcePeople, settings: Settings
) -> None:
    perforce.person("erin")
    settings.P4_SIGN_IN_SERVER = "renamed"
    browser, answer = sign_in("erin", PASSWORD)
    assert not is_in(browser)
    assert WRONG in answer.text


def test_few_wait_for_it_at_a_time(perforce: PerforcePeople) -> None:
    perforce.person("erin")
    places = [place_to_ask() for _ in range(SIGN_INS_AT_A_TIME)]
    for place in places:
        place.__enter__()
    try:
        _, answer = sign_in("erin", PASSWORD)
    finally:
        for place in places:
            place.__exit__(None, None, None)
    assert "Too many people are signing in" in answer.text
    assert is_in(sign_in("erin", PASSWORD)[0])


def test_guesses_are_slowed_down_as_for_passwords_kept_here(
    perforce: PerforcePeople,
) -> None:
    perforce.person("erin")
    for _ in range(BY_NAME_AND_ADDRESS):
        sign_in("erin", "wrong")
    browser, answer = sign_in("erin", PASSWORD)
    assert answer.status_code == 429
    assert not is_in(browser)


def test_the_sign_in_page_says_whose_password_it_takes(
    perforce: PerforcePeople, settings: Settings
) -> None:
    page = Client().get("/login/").text
    assert "Your username and password at Perforce" in page
    assert "p4 login -a -p" in page
    settings.P4_SIGN_IN_SERVER = ""
    assert "Perforce password" not in Client().get("/login/").text


@contextmanager
def _another(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory, *options: str
) -> Iterator[PerforcePeople]:
    """Sign people in with a server of another kind."""
    settings.P4_SIGN_IN_SERVER = "people"
    settings.AUTHENTICATION_BACKENDS = [
        *settings.AUTHENTICATION_BACKENDS,
        "provisioner.perforce_sign_in.backends.PerforcePasswords",
    ]
    with lab_server(tmp_path_factory.mktemp("p4"), *options) as server:
        yield from people_of(server, settings)


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest().upper()
