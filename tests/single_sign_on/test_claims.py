"""What claims become, whatever a provider writes into them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import transaction
from pytest_django import Settings

from provisioner.accounts.models import Team, User
from provisioner.accounts.system import SYSTEM_USERNAME
from provisioner.identities.refusals import AccountClosed, NameBelongsToAnother
from provisioner.people.actions.accounts import account_close
from provisioner.single_sign_on.actions import account_sign_in
from tests.support.crossing import (
    in_a_connection_of_its_own,
    wait_until_somebody_waits_for_a_lock,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def provider(settings: Settings) -> None:
    settings.OIDC_ISSUER = "https://login.example.com"
    settings.OIDC_NAME = "Example"


def signed_in(**claims: Any) -> User:
    return account_sign_in({"sub": "1", "preferred_username": "trent", **claims})


@pytest.mark.parametrize(
    "email", [5, ["@"], {"@": 1}, "a" * 300 + "@example.com"], ids=ascii
)
def test_what_is_no_address_is_left_out(email: Any) -> None:
    assert signed_in(email=email).email == ""


@pytest.mark.parametrize(
    ("is_verified", "email"),
    [(True, "a@x.com"), ("true", "a@x.com"), (False, ""), ("false", ""), (0, "")],
)
def test_an_address_is_verified_in_words_too(is_verified: Any, email: str) -> None:
    assert signed_in(email="a@x.com", email_verified=is_verified).email == email


@pytest.mark.parametrize(
    "groups", [["a\0b", "Rendering"], ["\ud800", 7, None, "Rendering"]], ids=ascii
)
def test_a_group_of_odd_letters_hides_no_other(groups: Any) -> None:
    team = Team.objects.create(name="Rendering")
    assert signed_in(groups=groups).team == team


@pytest.mark.parametrize(
    ("number", "uid"),
    [("1234567890", 1234567890), (2**31 - 1, 2**31 - 1), (2**31, None), (2**32, None)],
)
def test_a_uid_of_ten_digits_is_one(number: Any, uid: int | None) -> None:
    assert signed_in(uidNumber=number, gidNumber=4000).uid == uid


def test_nobody_takes_the_name_of_cloneyards_own_account() -> None:
    User.objects.filter(username=SYSTEM_USERNAME).delete()
    with pytest.raises(NameBelongsToAnother):
        signed_in(preferred_username=SYSTEM_USERNAME.upper())


def test_nobody_becomes_a_machine_by_name(settings: Settings) -> None:
    settings.OIDC_ADOPTS_ACCOUNTS = True
    User.objects.create(username="trent", is_service=True)
    with pytest.raises(NameBelongsToAnother):
        signed_in()


@pytest.mark.django_db(transaction=True)
def test_a_sign_in_does_not_reopen_an_account_that_is_being_closed(admin: User) -> None:
    account = signed_in()
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            account_close(by=admin, account=account)
            answer = pool.submit(in_a_connection_of_its_own(signed_in))
            wait_until_somebody_waits_for_a_lock()
        with pytest.raises(AccountClosed):
            answer.result()
    account.refresh_from_db()
    assert not account.is_active
