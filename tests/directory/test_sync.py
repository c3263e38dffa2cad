"""The nightly sync with a real directory: what it closes, and when it asks first."""

from __future__ import annotations

import io

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from provisioner.accounts.models import Session, Team, User
from provisioner.accounts.tokens import live_tokens, token_create
from provisioner.audit_log.models import Event
from provisioner.directory.actions.syncs import directory_sync, directory_sync_approve
from provisioner.directory.models import DirectorySync
from provisioner.directory.refusals import NothingToApprove
from provisioner.directory.sweeps import send_administrator_mail, sweep_directory
from provisioner.lib.refusals import NotAllowed
from provisioner.people.actions.accounts import account_close
from provisioner.workspaces.models import Workspace
from tests.support.directory_people import ADMINISTRATORS, is_in, sign_in
from tests.support.slapd import PEOPLE, Slapd

State = DirectorySync.State


@pytest.fixture
def people(directory: Slapd) -> dict[str, str]:
    """Three people who have signed in, by their distinguished names."""
    names = {name: directory.person(name) for name in ("erin", "frank", "grace")}
    for name in names:
        sign_in(name)
    return names


def account(name: str) -> User:
    return User.objects.get(username=name)


def done_to(sync: DirectorySync) -> dict[str, str]:
    return {
        change.account.username: change.action
        for change in sync.changes.select_related("account")
    }


def test_nothing_changes_while_nothing_does(people: dict[str, str]) -> None:
    sync = directory_sync()
    assert (sync.state, sync.accounts_known) == (State.DONE, 3)
    assert done_to(sync) == {}


def test_who_is_gone_loses_sessions_and_tokens(
    directory: Slapd, people: dict[str, str]
) -> None:
    browser, _ = sign_in("erin")
    token_create(by=account("erin"))
    token_create(by=account("frank"))
    directory.remove(people["erin"])

    sync = directory_sync()

    assert sync.state == State.DONE
    assert done_to(sync) == {"erin": "close"}
    assert not account("erin").is_active
    assert account("frank").is_active
    assert browser.get("/trash/").status_code == 302
    assert not Session.objects.filter(account=account("erin")).exists()
    assert [token.user.username for token in live_tokens()] == ["frank"]
    event = Event.objects.get(kind="account_closed_by_directory")
    assert event.message == "Closed. Is gone from Example."
    # The next night there is nothing left to do.
    assert done_to(directory_sync()) == {}


def test_who_is_disabled_is_closed_and_opens_again_when_they_are_back(
    directory: Slapd, people: dict[str, str]
) -> None:
    directory.change(people["erin"], nsAccountLock="TRUE")
    assert done_to(directory_sync()) == {"erin": "close"}
    assert not is_in(sign_in("erin")[0])
    directory.change(people["erin"], nsAccountLock=None)
    assert is_in(sign_in("erin")[0])
    assert account("erin").is_active
    assert Event.objects.filter(kind="account_reopened_by_directory").exists()


def test_what_an_administrator_has_closed_stays_closed(
    directory: Slapd, people: dict[str, str], admin: User
) -> None:
    directory.change(people["erin"], nsAccountLock="TRUE")
    directory_sync()
    account_close(by=admin, account=account("erin"))
    directory.change(people["erin"], nsAccountLock=None)
    assert not is_in(sign_in("erin")[0])
    directory_sync()
    assert not account("erin").is_active


def test_teams_and_roles_follow(directory: Slapd, people: dict[str, str]) -> None:
    team = Team.objects.create(name="Rendering")
    directory.group(ADMINISTRATORS, people["erin"])
    directory.group("Rendering", people["frank"])
    directory.change(people["grace"], mail="grace@example.com")

    assert set(done_to(directory_sync()).values()) == {"update"}

    assert account("erin").is_administrator
    assert account("frank").team == team
    assert account("grace").email == "grace@example.com"
    directory.remove(f"cn={ADMINISTRATORS},ou=groups,dc=example,dc=com")
    assert done_to(directory_sync()) == {"erin": "take_role"}
    assert not account("erin").is_administrator


def test_local_accounts_are_never_touched(
    directory: Slapd, people: dict[str, str], admin: User, alice: User
) -> None:
    before = User.objects.filter(pk__in=(admin.pk, alice.pk)).values()
    rows = list(before)
    directory.change(people["erin"], nsAccountLock="TRUE")
    directory_sync()
    assert list(before.all()) == rows


def test_workspaces_of_who_is_gone_stay(
    directory: Slapd, people: dict[str, str], ready: Workspace
) -> None:
    Workspace.objects.filter(pk=ready.pk).update(owner=account("erin"))
    directory.remove(people["erin"])
    sync = directory_sync()
    assert "1 workspace stays until the lease ends" in sync.changes.get().sentence
    ready.refresh_from_db()
    assert ready.state == Workspace.State.READY
    assert ready.owner == account("erin")


def test_a_preview_changes_nothing(directory: Slapd, people: dict[str, str]) -> None:
    directory.remove(people["erin"])
    sync = directory_sync(is_preview=True)
    assert sync.state == State.PREVIEWED
    assert done_to(sync) == {"erin": "close"}
    assert account("erin").is_active


# --- a directory that is wrong rather than empty


def test_a_directory_with_nobody_left_closes_nobody(
    directory: Slapd, people: dict[str, str], admin: User, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    User.objects.filter(pk=admin.pk).update(email="admin@example.com")
    for dn in people.values():
        directory.remove(dn)

    sync = directory_sync()

    assert sync.state == State.ASKS
    assert "none of 3 people" in sync.message
    assert User.objects.filter(identity__isnull=False, is_active=True).count() == 3
    event = Event.objects.get(kind="directory_sync_asks")
    send_administrator_mail(event_id=event.pk, account_id=admin.pk)
    assert "needs your approval" in mail.outbox[0].subject


@pytest.mark.parametrize("change", [{"user_base": f"ou=gone,{PEOPLE}"}])
def test_a_base_that_is_gone_fails_and_closes_nobody(
    change: dict[str, str],
    directory: Slapd,
    people: dict[str, str],
    settings: Settings,
) -> None:
    settings.DIRECTORY = directory.directory(**change)
    sync = directory_sync()
    assert sync.state == State.FAILED
    assert User.objects.filter(identity__isnull=False, is_active=True).count() == 3


def test_a_silent_directory_closes_nobody(
    directory: Slapd, people: dict[str, str], settings: Settings
) -> None:
    settings.DIRECTORY = directory.directory(timeout_seconds=1)
    with directory.silent():
        sync = directory_sync()
    assert sync.state == State.FAILED
    assert "does not answer" in sync.message
    assert User.objects.filter(identity__isnull=False, is_active=True).count() == 3


def test_many_at_once_are_asked_about_and_closed_once_approved(
    directory: Slapd, people: dict[str, str], admin: User, alice: User
) -> None:
    for name in ("erin", "frank"):
        directory.remove(people[name])
    sync = directory_sync(most=1)
    assert sync.state == State.ASKS
    assert account("erin").is_active

    with pytest.raises(NotAllowed):
        directory_sync_approve(by=alice, sync=sync)
    directory_sync_approve(by=admin, sync=sync)
    assert directory_sync(most=1).state == State.DONE
    assert not account("erin").is_active
    assert not account("frank").is_active
    # It counts once.
    with pytest.raises(NothingToApprove):
        directory_sync_approve(by=admin, sync=sync)


def test_an_approval_is_for_those_accounts_alone(
    directory: Slapd, people: dict[str, str], admin: User
) -> None:
    directory.remove(people["erin"])
    sync = directory_sync(most=0)
    directory_sync_approve(by=admin, sync=sync)
    directory.remove(people["frank"])
    assert directory_sync(most=0).state == State.ASKS
    assert account("erin").is_active


def test_an_older_question_is_not_approved(
    directory: Slapd, people: dict[str, str], admin: User
) -> None:
    directory.remove(people["erin"])
    older = directory_sync(most=0)
    directory_sync(most=0)
    with pytest.raises(NothingToApprove):
        directory_sync_approve(by=admin, sync=older)
    older.refresh_from_db()
    assert older.state == State.ASKS


def test_a_sync_that_was_cut_short_is_followed_by_a_whole_one(
    directory: Slapd, people: dict[str, str]
) -> None:
    cut = DirectorySync.objects.create()
    directory.remove(people["erin"])
    assert directory_sync().state == State.DONE
    cut.refresh_from_db()
    assert cut.state == State.FAILED
    assert not account("erin").is_active


# --- how it is started


def test_without_a_service_account_it_says_so(
    directory: Slapd, settings: Settings
) -> None:
    settings.DIRECTORY = directory.directory(
        bind_dn="", bind_password="", direct_bind=f"uid={{name}},{PEOPLE}"
    )
    assert "LDAP_BIND_DN" in directory_sync().message
    sweep_directory()
    assert DirectorySync.objects.count() == 1


def test_the_command_previews_and_syncs(
    directory: Slapd, people: dict[str, str]
) -> None:
    directory.remove(people["erin"])
    said = io.StringIO()
    call_command("directory_sync", "--preview", stdout=said)
    assert "erin: close. Is gone from Example." in said.getvalue()
    assert "1 of 3 accounts would change." in said.getvalue()
    with pytest.raises(CommandError, match="more than 0 at once"):
        call_command("directory_sync", "--most", "0", stdout=said)
    call_command("directory_sync", stdout=said)
    assert "1 of 3 accounts changed." in said.getvalue()


def test_the_page_says_what_it_asks_and_approves(
    directory: Slapd, people: dict[str, str], as_admin: Client
) -> None:
    directory_sync()
    directory.remove(people["erin"])
    sync = directory_sync(most=0)
    page = as_admin.get("/people/directory/").text
    assert "more than 0 at once" in page
    assert "Is gone from Example." in page
    assert "needs your approval" in as_admin.get("/overview/").text
    answer = as_admin.post(f"/people/directory/{sync.pk}/approve/", follow=True)
    assert "Approved. Queued." in answer.text
    sync.refresh_from_db()
    assert sync.state == State.APPROVED
    answer = as_admin.post("/people/directory/sync/", {"preview": "on"}, follow=True)
    assert "A sync is queued already" in answer.text
