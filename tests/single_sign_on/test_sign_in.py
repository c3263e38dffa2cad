"""Sign-in at a real provider of OpenID Connect, run in a thread."""

from __future__ import annotations

import contextlib
import pwd
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth import SESSION_KEY
from django.test import Client
from pytest_django import Settings

from provisioner.accounts.models import Team, User
from provisioner.audit_log.models import Event
from provisioner.identities.models import Identity
from provisioner.identities.places import SIGN_INS_AT_A_TIME, place_to_ask
from provisioner.single_sign_on import provider as provider_module
from provisioner.single_sign_on import views as views_module
from tests.support.provider import (
    ADMINISTRATORS,
    Tell,
    agree,
    go,
    issuer,
    sign_in,
    sso,
    tell,
)

# The provider's own, in its thread: it is not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore:get_jwt_config:DeprecationWarning")

__all__ = ["issuer", "sso", "tell"]


def said(browser: Client) -> str:
    return browser.get("/login/").text


def test_the_first_sign_in_makes_an_account(tell: Tell) -> None:
    tell(
        "7f3a",
        preferred_username="erin",
        email="erin@example.com",
        email_verified=True,
        given_name="Erin",
        uidNumber=4711,
        gidNumber="4000",
        groups=["staff"],
    )

    browser, answer = sign_in("7f3a", path="/single-sign-on/?next=/trash/")

    assert (answer.status_code, answer["Location"]) == (302, "/trash/")
    erin = User.objects.get(username="erin")
    assert browser.session[SESSION_KEY] == str(erin.pk)
    assert (erin.email, erin.first_name) == ("erin@example.com", "Erin")
    assert (erin.uid, erin.gid) == (4711, 4000)
    assert not erin.is_administrator
    assert not erin.has_usable_password()
    assert Event.objects.get(kind="signed_in", actor=erin).via == "OpenID Connect"


def test_later_ones_find_it_by_subject_whatever_else_has_changed(tell: Tell) -> None:
    tell("7f3a", preferred_username="erin", email="erin@example.com")
    sign_in("7f3a")
    tell("7f3a", preferred_username="erin.new", email="new@example.com")
    sign_in("7f3a")
    erin = Identity.objects.get(subject="7f3a").account
    assert (erin.username, erin.email) == ("erin", "new@example.com")
    assert User.objects.filter(username="erin.new").count() == 0


def test_groups_give_and_take_the_role_and_the_team(tell: Tell) -> None:
    team = Team.objects.create(name="Rendering")
    tell("1", preferred_username="frank", groups=[f"/{ADMINISTRATORS}", "Rendering"])
    sign_in("1")
    frank = User.objects.get(username="frank")
    assert frank.is_administrator
    assert not frank.is_superuser
    assert frank.team == team

    tell("1", preferred_username="frank")  # no claim at all
    sign_in("1")
    frank.refresh_from_db()
    assert not frank.is_administrator


@pytest.mark.parametrize("adopts", [False, True])
def test_an_account_of_that_name_is_adopted_only_where_settings_say_so(
    adopts: bool, tell: Tell, alice: User, settings: Settings
) -> None:
    settings.OIDC_ADOPTS_ACCOUNTS = adopts
    tell("2", preferred_username="Alice")
    browser, _ = sign_in("2")
    assert (SESSION_KEY in browser.session) == adopts
    assert Identity.objects.filter(account=alice).exists() == adopts
    assert ("There is an account “alice”" in said(browser)) == (not adopts)


def test_nobody_becomes_the_superuser_by_name(
    tell: Tell, admin: User, settings: Settings
) -> None:
    settings.OIDC_ADOPTS_ACCOUNTS = True
    User.objects.filter(pk=admin.pk).update(is_superuser=True)
    tell("3", preferred_username=admin.username)
    browser, _ = sign_in("3")
    assert SESSION_KEY not in browser.session


def test_a_uid_of_another_account_is_refused_and_nothing_is_left(
    tell: Tell, alice: User
) -> None:
    tell("4", preferred_username="grace", uidNumber=alice.uid, gidNumber=alice.gid)
    browser, _ = sign_in("4")
    assert f"belongs to the account “{alice.username}”" in said(browser)
    assert not User.objects.filter(username="grace").exists()


@pytest.mark.parametrize("uid", ["0", "12", "-5", "x", "99999999999", None])
def test_uids_of_the_system_and_nonsense_are_not_given(uid: Any, tell: Tell) -> None:
    tell("5", preferred_username="heidi", uidNumber=uid, gidNumber=4000)
    sign_in("5")
    assert User.objects.get(username="heidi").uid is None


def test_without_claims_the_directory_of_the_host_says_the_uid(tell: Tell) -> None:
    there = pwd.getpwnam("nobody")
    tell("14", preferred_username="nobody")
    sign_in("14")
    account = User.objects.get(username="nobody")
    assert (account.uid, account.gid) == (there.pw_uid, there.pw_gid)


@pytest.mark.parametrize("name", ["", "-a", "a b", "root/..", "a@b#c", "x" * 200])
def test_names_that_perforce_could_not_use_are_refused(name: str, tell: Tell) -> None:
    tell("6", preferred_username=name)
    browser, _ = sign_in("6")
    assert "sent no usable name" in said(browser)
    assert not Identity.objects.exists()


def test_the_companys_domain_is_taken_from_names(
    tell: Tell, settings: Settings
) -> None:
    settings.OIDC_USERNAME_DOMAIN = "example.com"
    tell("7", preferred_username="ivan@example.com")
    sign_in("7")
    assert User.objects.filter(username="ivan").exists()


def test_a_closed_account_is_not_let_in(tell: Tell) -> None:
    tell("8", preferred_username="judy")
    sign_in("8")
    User.objects.filter(username="judy").update(is_active=False)
    browser, _ = sign_in("8")
    assert SESSION_KEY not in browser.session
    assert "is closed" in said(browser)


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "alice@x.com", "email_verified": False},
        {"email": "no address"},
        {"email": ["alice@x.com"]},
        {"email": "a@x.com\nBcc: b@x.com"},
    ],
)
def test_addresses_unverified_or_malformed_are_not_taken_over(
    claims: dict[str, Any], tell: Tell
) -> None:
    tell("9", preferred_username="ken", given_name="K\0e\nn", **claims)
    sign_in("9")
    ken = User.objects.get(username="ken")
    assert (ken.email, ken.first_name) == ("", "K\ufffde n")


# --- what the browser brings back


def test_an_answer_counts_once_and_only_in_the_browser_that_began(tell: Tell) -> None:
    tell("10", preferred_username="lea")
    browser, address = go()
    back = agree(address, sub="10")
    other, _ = go()
    assert other.get(back)["Location"] == "/login/"
    assert SESSION_KEY not in other.session
    assert browser.get(back)["Location"] == "/"
    assert browser.get(back)["Location"] == "/login/"


def test_a_code_of_another_browser_signs_nobody_in(tell: Tell) -> None:
    tell("18", preferred_username="trudy")
    first, address = go()
    back = agree(address, sub="18")
    other, own_address = go()
    code = parse_qs(urlsplit(back).query)["code"][0]
    state = parse_qs(urlsplit(own_address).query)["state"][0]
    other.get(f"/single-sign-on/callback/?code={code}&state={state}")
    assert SESSION_KEY not in other.session
    assert "The answer of Example is not valid" in said(other)
    # The provider takes a code once, whoever brings it.
    first.get(back)
    assert SESSION_KEY not in first.session
    assert "refused to say who you are" in said(first)


def test_a_session_of_before_is_not_that_of_after(tell: Tell) -> None:
    tell("19", preferred_username="uma")
    browser, address = go()
    before = browser.session.session_key
    browser.get(agree(address, sub="19"))
    assert SESSION_KEY in browser.session
    assert browser.session.session_key != before


def test_whoever_says_no_there_reads_that_here(sso: str) -> None:
    browser, address = go()
    back = agree(address, sub="11", action="deny")
    assert browser.get(back)["Location"] == "/login/"
    assert "could not be signed in" in said(browser)


def test_it_asks_with_pkce_state_and_nonce(sso: str) -> None:
    _, address = go()
    asked = parse_qs(urlsplit(address).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert {"state", "nonce", "code_challenge"} <= set(asked)


@pytest.mark.parametrize("address", ["//evil.example.com/", "https://evil.example.com"])
def test_it_leads_to_no_other_site_afterwards(address: str, tell: Tell) -> None:
    tell("13", preferred_username="nina")
    _, answer = sign_in("13", path=f"/single-sign-on/?next={address}")
    assert answer["Location"] == "/"


# --- the provider, and no provider


def test_a_provider_that_does_not_answer_is_named(sso: str, settings: Settings) -> None:
    settings.OIDC_ISSUER = "http://127.0.0.1:9"
    browser, location = go()
    assert location == "/login/"
    assert "Example does not answer" in said(browser)


def test_one_that_calls_itself_otherwise_is_not_trusted(
    sso: str, settings: Settings
) -> None:
    settings.OIDC_ISSUER = f"{sso}/"
    browser, location = go()
    assert location == "/login/"
    assert "another than OIDC_ISSUER" in said(browser)


@pytest.mark.parametrize("endpoint", ["http://login.example.com/token", 7, None])
def test_no_secret_goes_to_an_address_without_tls(
    endpoint: Any, sso: str, settings: Settings
) -> None:
    settings.OIDC_ISSUER = "https://login.example.com"
    named = {*provider_module._DISCOVERED.values()}
    document = dict.fromkeys(named, endpoint)
    provider_module._read[settings.OIDC_ISSUER] = (time.monotonic(), document)
    browser, location = go()
    assert location == "/login/"
    assert "is no https:// address" in said(browser)


def test_a_silent_provider_holds_few_threads(sso: str) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(SIGN_INS_AT_A_TIME):
            stack.enter_context(place_to_ask())
        browser, location = go()
        assert location == "/login/"
        assert "Too many people are signing in" in said(browser)
    assert go()[1].startswith(sso)


def test_the_sign_in_page_leads_there(sso: str) -> None:
    page = Client(HTTP_HOST="localhost").get("/login/?next=/trash/").text
    assert "Sign in with Example" in page
    assert "/single-sign-on/?next=%2Ftrash%2F" in page


def test_without_a_provider_there_is_no_such_page(as_nobody: Client) -> None:
    assert as_nobody.get("/single-sign-on/").status_code == 404
    assert "/single-sign-on/" not in as_nobody.get("/login/").text


# --- sessions and passwords meanwhile


def test_pages_and_passwords_need_no_provider(
    tell: Tell, alice: User, settings: Settings
) -> None:
    tell("14", preferred_username="olga")
    browser, _ = sign_in("14")
    settings.OIDC_ISSUER = "http://127.0.0.1:9"
    assert browser.get("/trash/").status_code == 200
    alice.set_password("A-Pass-Phrase-9")
    alice.save()
    with_password = Client(HTTP_HOST="localhost")
    form = {"username": "alice", "password": "A-Pass-Phrase-9"}
    assert with_password.post("/login/", form).status_code == 302
    form["password"] = "wrong"
    assert Client(HTTP_HOST="localhost").post("/login/", form).status_code == 200


def test_the_session_of_a_closed_account_ends(tell: Tell) -> None:
    tell("15", preferred_username="peggy")
    browser, _ = sign_in("15")
    assert browser.get("/trash/").status_code == 200
    User.objects.filter(username="peggy").update(is_active=False)
    assert browser.get("/trash/").status_code == 302


def test_the_password_form_takes_no_code_of_the_provider(tell: Tell) -> None:
    tell("16", preferred_username="rupert")
    browser, address = go()
    bare = "&".join(
        part
        for part in address.split("&")
        if not part.startswith(("nonce=", "code_challenge"))
    )
    back = agree(bare, sub="16")
    form = {"username": "nobody", "password": "wrong"}
    browser.post(f"/login/?{urlsplit(back).query}", form)
    assert SESSION_KEY not in browser.session


def test_no_link_signs_somebody_out(tell: Tell) -> None:
    tell("17", preferred_username="sybil")
    browser, _ = sign_in("17")
    browser.get("/single-sign-on/callback/?error=access_denied")
    assert SESSION_KEY in browser.session


def test_whoever_only_begins_is_slowed_down_by_address(
    sso: str, monkeypatch: pytest.MonkeyPatch, alice: User
) -> None:
    """Each begun one is a row in the database."""
    monkeypatch.setattr(views_module, "BEGUN_AT_AN_ADDRESS", 3)
    led = [go()[1] for _ in range(5)]
    assert [address == "/login/" for address in led] == [False] * 3 + [True] * 2
    browser = Client(HTTP_HOST="localhost")
    assert (
        "Too many people are signing in"
        in browser.get("/single-sign-on/", follow=True).text
    )
    elsewhere = Client(HTTP_HOST="localhost", REMOTE_ADDR="192.0.2.7")
    assert elsewhere.get("/single-sign-on/")["Location"].startswith(sso)
