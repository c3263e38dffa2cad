"""A forgotten password: by mail, where this installation sends any."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator

import pytest
from django.test import Client
from pytest_django import Settings

from provisioner.accounts.attempts import BY_NAME_AND_ADDRESS
from provisioner.accounts.models import ApiToken, User
from provisioner.accounts.tokens import token_create
from provisioner.audit_log.models import Event
from provisioner.people.actions import passwords
from tests.support.factories import PASSWORD
from tests.support.mail_server import BACKEND, Mailbox

ASK = "/password/forgotten/"
NEW = "a-quite-long-new-one"


@pytest.fixture
def mailbox(settings: Settings) -> Iterator[type[Mailbox]]:
    settings.EMAIL_BACKEND = BACKEND
    settings.PUBLIC_URL = "https://cloneyard.example.com"
    Mailbox.empty()
    yield Mailbox
    Mailbox.empty()


@pytest.fixture
def erin(alice: User, jobs_emptied: None) -> User:
    alice.email = "alice@example.com"
    alice.save()
    return alice


def link_in(mailbox: type[Mailbox]) -> str:
    [(_, mail)] = mailbox.delivered
    found = re.search(
        r"https://cloneyard\.example\.com(/password/new/\S+)", str(mail.body)
    )
    assert found is not None
    return found.group(1)


def test_a_mail_leads_to_a_new_password(
    as_nobody: Client, erin: User, mailbox: type[Mailbox], run_jobs: Callable[[], None]
) -> None:
    token_create(by=erin)
    assert ASK in as_nobody.get("/login/").text

    sent = as_nobody.post(
        ASK, {"email": "ALICE@example.com"}, headers={"Host": "localhost"}
    )
    run_jobs()

    assert sent["Location"] == "/login/"
    assert "a mail is on its way" in as_nobody.get("/login/").text
    assert mailbox.subjects() == ["Choose a password for Cloneyard"]
    form = as_nobody.get(link_in(mailbox), follow=True)
    assert "Revoke my API tokens" in form.text
    address = form.redirect_chain[-1][0]
    chosen = {"new_password1": NEW, "new_password2": NEW, "revokes_tokens": "on"}
    done = as_nobody.post(address, chosen, follow=True)
    assert "Tokens revoked: 1." in done.text
    erin.refresh_from_db()
    assert erin.check_password(NEW)
    assert not ApiToken.objects.exists()
    kinds = Event.objects.filter(subject_id=erin.pk).values_list("kind", flat=True)
    assert {"password_mail_asked", "account_changed"} <= set(kinds)


def test_a_link_works_once(
    as_nobody: Client, erin: User, mailbox: type[Mailbox], run_jobs: Callable[[], None]
) -> None:
    as_nobody.post(ASK, {"email": "alice@example.com"})
    run_jobs()
    erin.set_password(NEW)
    erin.save()

    page = as_nobody.get(link_in(mailbox), follow=True).text

    assert "This link has been used already or has expired." in page


@pytest.mark.parametrize("address", ["nobody@example.com", "closed@example.com"])
def test_nobody_learns_who_has_an_account(
    address: str,
    as_nobody: Client,
    erin: User,
    mailbox: type[Mailbox],
    run_jobs: Callable[[], None],
) -> None:
    erin.email, erin.is_active = "closed@example.com", False
    erin.save()
    answer = as_nobody.post(ASK, {"email": address}, follow=True)
    run_jobs()
    assert "If an account has this address, a mail is on its way." in answer.text
    assert mailbox.delivered == []


def test_asking_again_and_again_is_slowed(
    as_nobody: Client, erin: User, mailbox: type[Mailbox]
) -> None:
    for _ in range(BY_NAME_AND_ADDRESS):
        as_nobody.post(ASK, {"email": "alice@example.com"})
    answer = as_nobody.post(ASK, {"email": "alice@example.com"})
    assert answer.status_code == 422
    assert "Too many failed attempts" in answer.text


def test_nobody_is_mailed_twice_in_minutes_from_wherever_it_is_asked(
    erin: User,
    mailbox: type[Mailbox],
    run_jobs: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(5):
        answer = Client(REMOTE_ADDR=f"192.0.2.{number}").post(
            ASK, {"email": "alice@example.com"}
        )
        assert answer.status_code == 302
    run_jobs()
    assert len(mailbox.delivered) == 1
    monkeypatch.setattr(passwords, "MAILED_ONCE_IN", dt.timedelta(0))
    Client().post(ASK, {"email": "alice@example.com"})
    run_jobs()
    assert len(mailbox.delivered) == 2


def test_where_no_mails_are_sent_it_says_who_helps(
    as_nobody: Client, erin: User, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    page = as_nobody.get(ASK).text
    assert "This installation sends no mails. Ask an administrator" in page
    assert 'name="email"' not in page
    as_nobody.post(ASK, {"email": "alice@example.com"})
    assert not Event.objects.filter(kind="password_mail_asked").exists()
    assert erin.check_password(PASSWORD)
