"""/me/sessions/: where I am signed in; administrators end those of a person."""

from __future__ import annotations

import datetime as dt

import pytest
from django.conf import settings
from django.db.models import F
from django.test import Client

from provisioner.accounts.models import Session, User
from provisioner.audit_log.models import Event
from provisioner.lib.user_agents import browser_of
from tests.support.factories import PASSWORD

PAGE = "/me/sessions/"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"


def signed_in(browser: Client, name: str = "alice", **headers: str) -> Session:
    """Sign in by the form, with these headers; return the session."""
    form = {"username": name, "password": PASSWORD}
    assert browser.post("/login/", form, headers=headers).status_code == 302
    return Session.objects.get(session_key=browser.session.session_key)


def is_signed_in(browser: Client) -> bool:
    return browser.get("/me/").status_code == 200


@pytest.fixture
def browser() -> Client:
    return Client()


def test_it_says_where_and_when_and_not_the_key(
    alice: User, as_alice: Client, browser: Client
) -> None:
    session = signed_in(browser, **{"User-Agent": FIREFOX})
    page = as_alice.get(PAGE).text

    assert "Firefox on Linux" in page
    assert "127.0.0.1" in page
    assert page.count("this one") == 1
    assert session.session_key not in page
    assert session.account == alice


def test_a_use_is_noted_once_a_minute(alice: User, browser: Client) -> None:
    session = signed_in(browser)
    earlier = F("last_used_at") - dt.timedelta(minutes=5)

    browser.get("/me/", headers={"User-Agent": FIREFOX})
    session.refresh_from_db()
    assert session.user_agent == "", "of this minute: not written again"

    Session.objects.filter(pk=session.pk).update(last_used_at=earlier)
    browser.get("/me/", headers={"User-Agent": FIREFOX})
    used = Session.objects.get(pk=session.pk)
    assert used.user_agent == FIREFOX
    assert used.last_used_at >= session.last_used_at
    assert used.signed_in_at == session.signed_in_at


def test_what_a_page_keeps_in_a_session_changes_nothing_of_its_use(
    alice: User, browser: Client
) -> None:
    before = signed_in(browser, **{"User-Agent": FIREFOX})
    kept = browser.session
    kept["anything"] = 1
    kept.save()

    after = Session.objects.get(pk=before.pk)
    assert after.session_data != before.session_data
    for field in ("account_id", "name", "ip", "user_agent", "signed_in_at"):
        assert getattr(after, field) == getattr(before, field)


def test_one_is_ended(as_alice: Client, alice: User, browser: Client) -> None:
    session = signed_in(browser)

    answer = as_alice.post(f"{PAGE}{session.name}/end/", follow=True)

    assert "The session has ended." in answer.text
    assert not is_signed_in(browser)
    assert is_signed_in(as_alice)
    event = Event.objects.get(kind="session_ended")
    assert event.message == f"Ended the session {session.name[:8]}."
    assert as_alice.post(f"{PAGE}{session.name}/end/").status_code == 404


def test_chosen_ones_are_ended_in_the_list(
    as_alice: Client, alice: User, as_carol: Client, browser: Client
) -> None:
    mine = signed_in(browser)
    hers = Session.objects.get(session_key=as_carol.session.session_key)

    form = {"do": "end", "chosen": [mine.name, hers.name, "\0"], "step": "sure"}
    as_alice.post(PAGE, form)

    assert not is_signed_in(browser)
    assert is_signed_in(as_carol)


def test_all_others_are_ended(
    as_alice: Client, alice: User, as_carol: Client, browser: Client
) -> None:
    signed_in(browser)

    answer = as_alice.post(f"{PAGE}end-others/", follow=True)

    assert "All other sessions have ended." in answer.text
    assert is_signed_in(as_alice)
    assert is_signed_in(as_carol)
    assert not is_signed_in(browser)
    as_alice.post(f"{PAGE}end-others/")
    assert Event.objects.filter(kind="session_ended").count() == 1


def test_strangers_end_nothing(as_carol: Client, alice: User, browser: Client) -> None:
    session = signed_in(browser)

    assert as_carol.post(f"{PAGE}{session.name}/end/").status_code == 404
    of_alice = f"/people/{alice.pk}/sessions/"
    assert as_carol.post(f"{of_alice}{session.name}/end/").status_code == 403
    assert as_carol.post(f"{of_alice}end/").status_code == 403
    assert is_signed_in(browser)


def test_administrators_see_and_end_those_of_a_person(
    as_admin: Client, alice: User
) -> None:
    browsers = [Client() for _ in range(3)]
    first, *_ = (signed_in(browser) for browser in browsers)
    page = f"/people/{alice.pk}/"

    shown = as_admin.get(page).text
    assert first.name in shown
    assert first.session_key not in shown
    as_admin.post(f"{page}sessions/{first.name}/end/")
    assert [is_signed_in(browser) for browser in browsers] == [False, True, True]

    answer = as_admin.post(f"{page}sessions/end/", follow=True)
    assert "All sessions have ended." in answer.text
    assert "Not signed in anywhere." in answer.text
    assert not any(is_signed_in(browser) for browser in browsers)
    assert is_signed_in(as_admin)


def test_no_administrator_ends_those_of_who_may_edit_rows(
    as_admin: Client, admin: User, alice: User, browser: Client
) -> None:
    User.objects.filter(pk=alice.pk).update(is_superuser=True)
    User.objects.filter(pk=admin.pk).update(is_superuser=False)
    session = signed_in(browser)

    page = f"/people/{alice.pk}/sessions/"
    for one in (f"{session.name}/end/", "end/"):
        answer = as_admin.post(f"{page}{one}", follow=True)
        assert "alice may edit database rows." in answer.text
    assert is_signed_in(browser)


def test_a_new_password_and_a_closed_account_leave_none(
    as_alice: Client, as_admin: Client, alice: User, browser: Client
) -> None:
    signed_in(browser)
    new = "a-quite-long-new-one"
    form = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    as_alice.post("/me/password/", form)
    assert alice.sessions.count() == 1, "the one that changed it"

    as_admin.post(f"/people/{alice.pk}/close/")
    assert not alice.sessions.exists()


def test_a_session_of_nobody_is_soon_over_and_that_of_a_sign_in_is_not(
    alice: User, browser: Client
) -> None:
    """Whoever begins a single sign-on makes one, and need not come back."""
    begun = browser.session
    begun["state"] = "begun"
    begun.save()
    assert begun.session_key is not None
    browser.cookies[settings.SESSION_COOKIE_NAME] = begun.session_key
    row = Session.objects.get(session_key=begun.session_key)
    assert row.expire_date - row.signed_in_at < dt.timedelta(hours=2)

    of_alice = signed_in(browser)

    assert of_alice.expire_date - of_alice.signed_in_at > dt.timedelta(days=1)


def test_browsers_are_named() -> None:
    chrome = (
        "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/142.0 Safari/537.36"
    )
    assert browser_of(chrome) == "Chrome on Windows"
    assert browser_of(f"{chrome} Edg/142.0") == "Edge on Windows"
    assert browser_of("Firefox/145.0") == "Firefox"
    assert browser_of("curl/8.5") == "curl/8.5"
    assert browser_of("") == "unknown"
