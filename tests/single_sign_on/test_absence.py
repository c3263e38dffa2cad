"""Who has not signed in with the provider for long is away, and is closed nightly."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth import SESSION_KEY
from django.db.models.functions import Now
from django.test import Client
from pytest_django import Settings

from provisioner.accounts.models import Session, User
from provisioner.accounts.tokens import live_tokens, token_create
from provisioner.audit_log.models import Event
from provisioner.directory.actions import syncs
from provisioner.directory.actions.syncs import directory_sync, directory_sync_approve
from provisioner.directory.models import DirectorySync
from provisioner.directory.sweeps import sweep_directory
from provisioner.identities.models import Identity
from provisioner.people.actions.accounts import account_close, account_reopen
from tests.support.provider import Tell, issuer, sign_in, sso, tell

__all__ = ["issuer", "sso", "tell"]

# The provider's own, in its thread: it is not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore:get_jwt_config:DeprecationWarning")

DAYS = 90
State = DirectorySync.State


@pytest.fixture
def people(tell: Tell, settings: Settings) -> dict[str, Client]:
    """Three people who have signed in, with their browsers."""
    settings.OIDC_ABSENT_DAYS = DAYS
    settings.DIRECTORY = None
    browsers = {}
    for name in ("erin", "frank", "grace"):
        tell(name, preferred_username=name)
        browsers[name], _ = sign_in(name)
    return browsers


def account(name: str) -> User:
    return User.objects.get(username=name)


def last_signed_in(name: str, *, days_ago: float) -> None:
    Identity.objects.filter(subject=name).update(
        vouched_at=Now() - dt.timedelta(days=days_ago)
    )


def closed_by(sync: DirectorySync) -> set[str]:
    assert {change.action for change in sync.changes.all()} <= {"close"}
    return {change.account.username for change in sync.changes.all()}


def test_who_signs_in_keeps_the_account(people: dict[str, Client]) -> None:
    last_signed_in("erin", days_ago=DAYS - 0.1)
    sync = directory_sync()
    assert (sync.state, sync.accounts_known) == (State.DONE, 3)
    assert closed_by(sync) == set()


def test_who_is_away_loses_sessions_and_tokens(people: dict[str, Client]) -> None:
    token_create(by=account("erin"))
    token_create(by=account("frank"))
    last_signed_in("erin", days_ago=DAYS + 0.1)

    sweep_directory()

    assert closed_by(DirectorySync.objects.get()) == {"erin"}
    assert not account("erin").is_active
    assert account("frank").is_active
    assert people["erin"].get("/trash/").status_code == 302
    assert not Session.objects.filter(account=account("erin")).exists()
    assert [token.user.username for token in live_tokens()] == ["frank"]
    event = Event.objects.get(kind="account_closed_by_directory")
    assert event.message == f"Closed. Has not signed in with Example for {DAYS} days."
    assert closed_by(directory_sync()) == set(), "there is nothing left to do"


def test_they_come_back_by_signing_in(people: dict[str, Client]) -> None:
    last_signed_in("erin", days_ago=DAYS + 1)
    directory_sync()

    browser, _ = sign_in("erin")

    assert browser.session[SESSION_KEY] == str(account("erin").pk)
    assert account("erin").is_active
    event = Event.objects.get(kind="account_reopened_by_directory")
    assert event.message == "Reopened: the person has signed in with Example again."
    assert closed_by(directory_sync()) == set()
    assert not live_tokens().filter(user=account("erin")).exists()


def test_each_sign_in_counts_anew(people: dict[str, Client]) -> None:
    last_signed_in("erin", days_ago=DAYS + 1)
    sign_in("erin")
    assert closed_by(directory_sync()) == set()


def test_a_password_kept_here_is_no_word_of_the_provider(
    people: dict[str, Client],
) -> None:
    erin = account("erin")
    erin.set_password("kept here")
    erin.save()
    last_signed_in("erin", days_ago=DAYS + 1)
    assert Client(HTTP_HOST="localhost").login(username="erin", password="kept here")
    assert closed_by(directory_sync()) == {"erin"}


def test_what_an_administrator_says_counts(
    people: dict[str, Client], admin: User
) -> None:
    last_signed_in("erin", days_ago=DAYS + 1)
    directory_sync()
    account_reopen(by=admin, account=account("erin"))
    assert closed_by(directory_sync()) == set(), "another ninety days"
    last_signed_in("frank", days_ago=DAYS + 1)
    account_close(by=admin, account=account("frank"))
    directory_sync()
    browser, _ = sign_in("frank")
    assert SESSION_KEY not in browser.session
    assert not account("frank").is_active


def test_machines_and_local_accounts_are_never_away(
    people: dict[str, Client], admin: User, settings: Settings
) -> None:
    User.objects.filter(username="erin").update(is_service=True)
    Identity.objects.filter(subject="frank").update(issuer="https://another.example")
    for name in ("erin", "frank"):
        last_signed_in(name, days_ago=4000)
    assert closed_by(directory_sync()) == set()


def test_zero_days_are_for_ever(people: dict[str, Client], settings: Settings) -> None:
    settings.OIDC_ABSENT_DAYS = 0
    last_signed_in("erin", days_ago=4000)
    sweep_directory()
    assert not DirectorySync.objects.exists()
    assert directory_sync().state == State.FAILED


def test_many_at_once_need_approval(
    people: dict[str, Client], settings: Settings, admin: User
) -> None:
    settings.LDAP_MOST_CLOSED = 1
    for name in ("erin", "frank"):
        last_signed_in(name, days_ago=DAYS + 1)
    sync = directory_sync()
    assert sync.state == State.ASKS
    assert "2 accounts would be closed" in sync.message
    assert account("erin").is_active

    directory_sync_approve(by=admin, sync=sync)
    assert directory_sync().state == State.DONE
    assert not account("erin").is_active
    assert not account("frank").is_active


def test_nobody_left_is_rather_a_fault_than_true(people: dict[str, Client]) -> None:
    for name in people:
        last_signed_in(name, days_ago=DAYS + 1)
    sync = directory_sync()
    assert sync.state == State.ASKS
    assert "None of 3 people have signed in with Example for 90 days" in sync.message


def test_a_preview_closes_nobody(people: dict[str, Client]) -> None:
    last_signed_in("erin", days_ago=DAYS + 1)
    sync = directory_sync(is_preview=True)
    assert closed_by(sync) == {"erin"}
    assert account("erin").is_active


def test_who_signs_in_while_it_runs_keeps_the_account(
    people: dict[str, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    last_signed_in("erin", days_ago=DAYS + 1)
    write_down = syncs._write_down

    def sign_in_meanwhile(*words: object) -> None:
        write_down(*words)  # type: ignore[arg-type]  # as it was called
        sign_in("erin")

    monkeypatch.setattr(syncs, "_write_down", sign_in_meanwhile)
    sync = directory_sync()
    assert [change.is_applied for change in sync.changes.all()] == [False]
    assert account("erin").is_active


def test_pages_say_when_an_account_is_closed(
    people: dict[str, Client], admin: User, settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "testserver"]
    office = Client()
    office.force_login(admin)
    page = f"/people/{account('erin').pk}/"
    warning = "has not signed in with Example for a long time"

    last_signed_in("erin", days_ago=DAYS - 15)
    assert warning not in office.get(page).text
    assert "Sign in again with Example" not in people["erin"].get("/me/").text
    last_signed_in("erin", days_ago=DAYS - 13)
    assert warning in office.get(page).text
    assert "Sign in again with Example" in people["erin"].get("/me/").text

    directory = office.get("/people/directory/").text
    assert "not signed in with Example for 90 days" in directory
    assert "Sync now" in directory
    settings.OIDC_ABSENT_DAYS = 0
    assert warning not in office.get(page).text
    assert "OIDC_ABSENT_DAYS is 0" in office.get("/people/directory/").text
