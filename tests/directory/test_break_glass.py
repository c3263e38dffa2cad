"""Who gets in while directory and provider are down, and that everybody hears of it."""

from __future__ import annotations

import pytest
from django.core import mail
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.directory.sweeps import send_administrator_mail
from tests.support.api_clients import token_for_password
from tests.support.directory_people import is_in, sign_in
from tests.support.factories import PASSWORD
from tests.support.slapd import Slapd

KIND = "break_glass_sign_in"


@pytest.fixture
def down(directory: Slapd, settings: Settings) -> None:
    settings.DIRECTORY = directory.directory(urls=("ldaps://127.0.0.1:9",))


@pytest.mark.usefixtures("down")
def test_a_superuser_signs_in_while_the_directory_is_down(admin: User) -> None:
    browser, _ = sign_in("admin", PASSWORD)
    assert is_in(browser)
    event = Event.objects.get(kind=KIND)
    assert (event.actor, event.subject) == (admin, "admin")


@pytest.mark.usefixtures("down")
def test_a_token_for_the_password_is_recorded_too(admin: User) -> None:
    answer = token_for_password("admin", PASSWORD)
    assert answer.status_code == 201
    assert Event.objects.filter(kind=KIND).count() == 1


def test_every_administrator_gets_a_mail(
    directory: Slapd, admin: User, alice: User, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    User.objects.filter(pk=alice.pk).update(is_staff=True, email="alice@example.com")
    User.objects.filter(pk=admin.pk).update(email="")
    sign_in("admin", PASSWORD)
    event = Event.objects.get(kind=KIND)
    job = ProcrastinateJob.objects.get(task_name="send_administrator_mail")
    assert job.args == {"event_id": event.pk, "account_id": alice.pk}
    send_administrator_mail(**job.args)
    assert mail.outbox[0].to == ["alice@example.com"]
    assert "Break-glass administrator admin signed in" in mail.outbox[0].subject


@pytest.mark.usefixtures("down")
def test_a_wrong_password_is_none_and_goes_nowhere(admin: User) -> None:
    browser, answer = sign_in("admin", "wrong")
    assert not is_in(browser)
    assert "Example does not answer" not in answer.text
    assert not Event.objects.filter(kind=KIND).exists()


def test_others_are_not_reported(directory: Slapd, alice: User) -> None:
    assert is_in(sign_in("alice", PASSWORD)[0])
    assert not Event.objects.filter(kind=KIND).exists()


def test_without_directory_and_provider_it_is_a_sign_in_like_any(admin: User) -> None:
    assert is_in(sign_in("admin", PASSWORD)[0])
    assert not Event.objects.filter(kind=KIND).exists()


def test_with_a_provider_alone_it_is_reported(admin: User, settings: Settings) -> None:
    settings.OIDC_ISSUER = "https://login.example.com"
    assert is_in(sign_in("admin", PASSWORD)[0])
    assert Event.objects.filter(kind=KIND).exists()
