"""Sign-in by a real directory: pages, the API, and what both refuse."""

from __future__ import annotations

import pytest
from django.contrib.auth import SESSION_KEY
from django.test import Client
from pytest_django import Settings

from provisioner.accounts.attempts import BY_NAME_AND_ADDRESS
from provisioner.accounts.models import ApiToken, SignInAttempts, User
from provisioner.audit_log.models import Event
from provisioner.identities.models import Identity
from provisioner.identities.places import SIGN_INS_AT_A_TIME, place_to_ask
from tests.support.api_clients import token_for_password
from tests.support.directory_people import is_in, sign_in
from tests.support.factories import PASSWORD as LOCAL_PASSWORD
from tests.support.slapd import PASSWORD, PEOPLE, Slapd


def test_the_first_sign_in_makes_an_account(directory: Slapd) -> None:
    dn = directory.person(
        "erin",
        "posixAccount",
        givenName="Erin",
        mail="erin@example.com",
        uidNumber="4711",
        gidNumber="4000",
        homeDirectory="/home/erin",
    )

    browser, answer = sign_in("erin")

    assert answer["Location"] == "/"
    erin = User.objects.get(username="erin")
    assert browser.session[SESSION_KEY] == str(erin.pk)
    assert (erin.email, erin.first_name) == ("erin@example.com", "Erin")
    assert (erin.uid, erin.gid) == (4711, 4000)
    assert not erin.is_administrator
    assert not erin.has_usable_password()
    assert erin.identity.subject == directory.value(dn, "entryUUID").decode()
    assert erin.identity.issuer == "ldap:dc=example,dc=com"
    assert Event.objects.get(kind="signed_in", actor=erin).via == "LDAP"


def test_later_ones_find_it_whatever_else_has_changed(directory: Slapd) -> None:
    dn = directory.person("erin", mail="erin@example.com")
    sign_in("erin")
    directory.change(dn, mail="new@example.com", uid=["erin", "erin.new"])
    browser, _ = sign_in("erin.new")
    assert is_in(browser)
    erin = Identity.objects.get().account
    assert (erin.username, erin.email) == ("erin", "new@example.com")
    assert User.objects.filter(username="erin.new").count() == 0


def test_somebody_new_of_an_old_name_gets_not_their_account(directory: Slapd) -> None:
    first = directory.person("erin")
    sign_in("erin")
    directory.remove(first)
    directory.person("erin")
    browser, answer = sign_in("erin")
    assert not is_in(browser)
    assert "There is an account “erin”" in answer.text
    assert "LDAP_ADOPTS_ACCOUNTS" in answer.text


@pytest.mark.parametrize("password", ["wrong", PASSWORD.upper(), " ", f"{PASSWORD}\0"])
def test_a_wrong_password_says_so(directory: Slapd, password: str) -> None:
    directory.person("erin")
    browser, answer = sign_in("erin", password)
    assert not is_in(browser)
    assert answer.status_code == 200
    assert not User.objects.filter(username="erin").exists()


@pytest.mark.parametrize("password", ["", "\0"])
def test_no_password_signs_nobody_in(directory: Slapd, password: str) -> None:
    """This server says yes to a name without a password, as some do."""
    directory.person("erin")
    browser, _ = sign_in("erin", password)
    assert not is_in(browser)
    answer = token_for_password("erin", password)
    assert answer.status_code == 401
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(
    "name",
    [
        *("*", "er*", "erin)(uid=*", "erin)(|(uid=*", "\\65rin", "(uid=erin)", "erin,"),
        *(
            "er\u00adin",
            "er\u200bin",
            "\uff45rin",
            "erin ",
            "e rin",
            "erin\0",
            "x" * 200,
        ),
    ],
    ids=ascii,
)
def test_no_other_spelling_finds_somebody(directory: Slapd, name: str) -> None:
    directory.person("erin")
    answer = token_for_password(name, PASSWORD)
    assert answer.status_code == 401
    assert not User.objects.filter(username__startswith="er").exists()


def test_case_is_ignored_as_the_directory_does(directory: Slapd) -> None:
    directory.person("erin")
    sign_in("Erin")
    sign_in("ERIN")
    assert [user.username for user in User.objects.filter(identity__isnull=False)] == [
        "erin"
    ]


def test_a_token_is_given_for_a_name_and_password_there(directory: Slapd) -> None:
    directory.person("erin")
    answer = token_for_password("erin", PASSWORD)
    assert answer.status_code == 201
    assert ApiToken.objects.get().user.username == "erin"


def test_several_entries_of_one_name_are_nobodys(
    directory: Slapd, settings: Settings
) -> None:
    directory.person("erin")
    under = directory.add(f"ou=more,{PEOPLE}", "organizationalUnit", ou="more")
    directory.person("erin", under=under)
    browser, answer = sign_in("erin")
    assert not is_in(browser)
    assert "Example could not look you up" in answer.text


# --- binding as the person


@pytest.mark.parametrize("template", [f"uid={{name}},{PEOPLE}"])
def test_people_bind_themselves_without_a_service_account(
    template: str, directory: Slapd, settings: Settings
) -> None:
    settings.DIRECTORY = directory.directory(
        bind_dn="", bind_password="", direct_bind=template, groups="memberof"
    )
    directory.person("erin")
    directory.person("mallory")
    assert is_in(sign_in("erin")[0])
    assert not is_in(sign_in("erin", "wrong")[0])
    assert not is_in(sign_in("erin,ou=people", PASSWORD)[0])


def test_who_binds_by_another_name_is_not_whom_the_filter_finds(
    directory: Slapd, settings: Settings
) -> None:
    """As where one's mail name is another's login: the entry's own password decides."""
    settings.DIRECTORY = directory.directory(
        bind_dn="",
        bind_password="",
        direct_bind=f"cn={{name}},{PEOPLE}",
        user_filter="(|(uid={name})(sAMAccountName={name}))",
        user_base=PEOPLE,
    )
    directory.add(
        f"cn=victim,{PEOPLE}",
        *("inetOrgPerson", "cloneyardTest"),
        cn="victim",
        sn="x",
        uid="mallory",
        userPassword="of mallory",
    )
    directory.person("victim", userPassword="of the victim")
    browser, _ = sign_in("victim", "of mallory")
    assert not is_in(browser)


# --- the directory, and none


def test_a_directory_that_does_not_answer_is_named_and_local_passwords_work(
    directory: Slapd, alice: User, settings: Settings
) -> None:
    directory.person("erin")
    settings.DIRECTORY = directory.directory(urls=("ldaps://127.0.0.1:9",))
    browser, answer = sign_in("erin")
    assert not is_in(browser)
    assert "Example does not answer" in answer.text
    assert is_in(sign_in("alice", LOCAL_PASSWORD)[0])


def test_a_silent_directory_is_not_waited_for_and_counts_no_attempt(
    directory: Slapd, settings: Settings
) -> None:
    directory.person("erin")
    settings.DIRECTORY = directory.directory(timeout_seconds=1)
    with directory.silent():
        _, answer = sign_in("erin")
    assert "Example does not answer" in answer.text
    assert not SignInAttempts.objects.filter(count__gt=0).exists()
    settings.DIRECTORY = directory.directory()
    assert is_in(sign_in("erin")[0])


def test_the_next_server_is_asked(directory: Slapd, settings: Settings) -> None:
    directory.person("erin")
    settings.DIRECTORY = directory.directory(
        urls=("ldaps://127.0.0.1:9", directory.url)
    )
    assert is_in(sign_in("erin")[0])


def test_a_wrong_password_of_the_service_account_is_no_wrong_password_of_people(
    directory: Slapd, settings: Settings
) -> None:
    directory.person("erin")
    settings.DIRECTORY = directory.directory(bind_password="changed")
    _, answer = sign_in("erin")
    assert "Example could not look you up" in answer.text


def test_few_wait_for_it_at_a_time(directory: Slapd) -> None:
    directory.person("erin")
    places = [place_to_ask() for _ in range(SIGN_INS_AT_A_TIME)]
    for place in places:
        place.__enter__()
    try:
        _, answer = sign_in("erin")
    finally:
        for place in places:
            place.__exit__(None, None, None)
    assert "Too many people are signing in" in answer.text
    assert is_in(sign_in("erin")[0])


def test_guesses_are_slowed_down_as_for_passwords_kept_here(directory: Slapd) -> None:
    directory.person("erin")
    for _ in range(BY_NAME_AND_ADDRESS):
        sign_in("erin", "wrong")
    browser, answer = sign_in("erin")
    assert answer.status_code == 429
    assert not is_in(browser)


def test_the_sign_in_page_says_whose_password_it_takes(
    directory: Slapd, settings: Settings
) -> None:
    assert "Example" in Client().get("/login/").text
    settings.DIRECTORY = None
    assert "Example" not in Client().get("/login/").text
