"""Guessing passwords is slow, on the page, in /admin/ and over the API."""

from __future__ import annotations

import contextlib
import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.http import HttpRequest
from django.test import Client, RequestFactory
from pytest_django import Settings

from provisioner.accounts import attempts
from provisioner.accounts.attempts import (
    BY_ADDRESS,
    BY_ADDRESS_AT_MOST,
    BY_NAME,
    BY_NAME_AND_ADDRESS,
    BY_NAME_AND_WIDER,
    BY_NAME_WHERE_MANY_FAILED,
    TooManyAttempts,
    begin_attempt,
    client_address,
)
from provisioner.accounts.models import SignInAttempts, User
from tests.support.api_clients import ApiAnswer, token_for_password
from tests.support.browsers import Answer
from tests.support.factories import PASSWORD

HERE = "192.0.2.1"


def from_address(address: str) -> HttpRequest:
    return RequestFactory().get("/", REMOTE_ADDR=address)


def fail(number: int, *, name: str = "alice", address: str = HERE) -> None:
    for _ in range(number):
        begin_attempt(from_address(address), name=name)


def later(**span: float) -> None:
    """Let so much time pass for the windows there are."""
    for row in SignInAttempts.objects.all():
        row.ends_at -= dt.timedelta(**span)
        row.save()


def page(name: str, password: str, *, path: str = "/login/") -> Answer:
    return Client(REMOTE_ADDR=HERE).post(path, {"username": name, "password": password})


def token(name: str, password: str) -> ApiAnswer:
    return token_for_password(name, password, REMOTE_ADDR=HERE)


# --- pages and API


def test_the_sign_in_page_refuses_after_too_many(alice: User) -> None:
    for _ in range(BY_NAME_AND_ADDRESS):
        assert page("alice", "wrong").status_code == 200

    answer = page("alice", PASSWORD)

    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 300
    assert "Too many failed attempts to sign in. Try again in" in answer.text
    assert page("carol", "wrong").status_code == 200


def test_the_window_ends(alice: User) -> None:
    for _ in range(BY_NAME_AND_ADDRESS):
        page("alice", "wrong")
    later(minutes=5)

    assert page("alice", PASSWORD).status_code == 302


def test_somebody_who_remembers_begins_anew(alice: User) -> None:
    for _ in range(3):
        for _ in range(BY_NAME_AND_ADDRESS - 1):
            page("alice", "wrong")
        assert page("alice", PASSWORD).status_code == 302


def test_the_administration_is_no_way_around(admin: User) -> None:
    for _ in range(BY_NAME_AND_ADDRESS):
        page("admin", "wrong", path="/admin/login/")

    answer = page("admin", PASSWORD, path="/admin/login/")

    assert "Too many failed attempts to sign in" in answer.text
    assert page("admin", PASSWORD).status_code == 429


def test_the_administration_lets_in_who_may(admin: User, alice: User) -> None:
    assert page("admin", PASSWORD, path="/admin/login/").status_code == 302
    assert page("alice", PASSWORD, path="/admin/login/").status_code == 200


def test_tokens_are_refused_after_too_many(alice: User) -> None:
    for _ in range(BY_NAME_AND_ADDRESS):
        assert token("alice", "wrong").status_code == 401

    answer = token("alice", PASSWORD)

    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 300
    body = answer.json()
    assert body["code"] == "throttled"
    assert body["detail"].startswith("Too many failed attempts to sign in.")


def test_page_and_api_count_together(alice: User) -> None:
    for number in range(BY_NAME_AND_ADDRESS):
        (page if number % 2 else token)("alice", "wrong")

    assert token("alice", PASSWORD).status_code == 429


def test_tokens_for_the_right_password_have_no_limit(alice: User) -> None:
    for _ in range(BY_NAME_AND_ADDRESS + 5):
        assert token("alice", PASSWORD).status_code == 201


def test_an_empty_form_is_no_attempt(db: None) -> None:
    page("alice", "")
    page("", "x")
    assert not SignInAttempts.objects.exists()


# --- what is counted


def test_many_addresses_guessing_at_one_name(db: None) -> None:
    for number in range(BY_NAME):
        fail(1, address=f"10.0.0.{number}")
    with pytest.raises(TooManyAttempts):
        fail(1, address="10.0.1.1")
    fail(1, name="carol", address="10.0.1.1")


def count_failures(number: int, *, of: str) -> None:
    """Count so many failures at once, as many names there would have made them."""
    fail(1, name="one-of-many", address=of)
    SignInAttempts.objects.filter(count__gt=0).update(count=number)


def test_where_many_names_failed_each_has_a_few_tries_left(db: None) -> None:
    for number in range(BY_ADDRESS):
        fail(1, name=f"user{number}")

    fail(BY_NAME_WHERE_MANY_FAILED, name="somebody-else")
    with pytest.raises(TooManyAttempts):
        fail(1, name="somebody-else")
    fail(1, name="somebody-else", address="10.0.1.1")


def test_a_right_password_gets_in_where_many_names_failed(alice: User) -> None:
    for number in range(BY_ADDRESS + 1):
        fail(1, name=f"user{number}")

    assert page("alice", PASSWORD).status_code == 302
    assert token("alice", PASSWORD).status_code == 201


def test_not_even_many_names_have_no_end(db: None) -> None:
    count_failures(BY_ADDRESS_AT_MOST, of=HERE)
    with pytest.raises(TooManyAttempts):
        fail(1, name="one-more")


def test_who_signed_in_there_lately_is_held_up_by_nobody_else(alice: User) -> None:
    assert page("alice", PASSWORD).status_code == 302
    for number in range(BY_NAME + 1):
        with contextlib.suppress(TooManyAttempts):
            fail(1, address=f"10.0.0.{number}")
    count_failures(BY_ADDRESS_AT_MOST, of=HERE)

    assert page("alice", PASSWORD).status_code == 302

    later(days=30)
    count_failures(BY_ADDRESS_AT_MOST, of=HERE)
    assert page("alice", PASSWORD).status_code == 429


def test_one_address_does_not_hold_up_a_name_elsewhere(alice: User) -> None:
    for _ in range(200):
        with contextlib.suppress(TooManyAttempts):
            fail(1, address="203.0.113.5")

    assert page("alice", PASSWORD).status_code == 302


def test_addresses_of_one_ipv6_network_are_one(db: None) -> None:
    for number in range(BY_NAME_AND_ADDRESS):
        fail(1, address=f"2001:db8:0:1::{number}")
    with pytest.raises(TooManyAttempts):
        fail(1, address="2001:db8:0:1:ffff::1")
    fail(1, address="2001:db8:0:2::1")


def test_who_has_many_ipv6_networks_has_few_tries_at_a_name(db: None) -> None:
    """And leaves the name to whoever comes from elsewhere."""
    for number in range(BY_NAME_AND_WIDER):
        fail(1, address=f"2001:db8:7:{number:x}::1")
    for number in range(2 * BY_NAME):
        with pytest.raises(TooManyAttempts):
            fail(1, address=f"2001:db8:7:{number:x}::2")

    fail(1, address="2001:db8:8::1")
    fail(1, address=HERE)


def test_who_has_many_ipv6_networks_tries_many_names_slowly(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "BY_WIDER", 5)
    monkeypatch.setattr(attempts, "BY_WIDER_AT_MOST", 12)
    for number in range(6):
        fail(1, name=f"dev{number}", address=f"2001:db8:7:{number:x}::1")

    fail(BY_NAME_WHERE_MANY_FAILED, address="2001:db8:7:a::1")
    with pytest.raises(TooManyAttempts):
        fail(1, address="2001:db8:7:b::1")
    fail(2, name="bob", address="2001:db8:7:b::1")
    with pytest.raises(TooManyAttempts):
        fail(1, name="carol", address="2001:db8:7:c::1")
    fail(1, name="carol", address="2001:db8:8::1")


def test_who_knows_the_password_forgets_what_failed_nearby(db: None) -> None:
    for number in range(BY_NAME_AND_WIDER):
        attempt = begin_attempt(from_address(f"2001:db8:7:{number:x}::1"), name="alice")
    attempt.succeeded()

    fail(1, address="2001:db8:7:ffff::1")


def test_names_are_compared_without_case_and_spaces(db: None) -> None:
    fail(BY_NAME_AND_ADDRESS)
    with pytest.raises(TooManyAttempts):
        fail(1, name=" Alice")


def test_what_was_typed_is_not_kept(db: None) -> None:
    fail(1, name="hunter2")
    keys = list(SignInAttempts.objects.values_list("key", flat=True))
    assert len(keys) == 3
    assert all(len(key) == 64 and "hunter2" not in key for key in keys)


def test_counts_that_are_over_are_removed(db: None) -> None:
    fail(1)
    later(minutes=6)
    fail(1, name="carol", address="10.0.0.9")
    assert SignInAttempts.objects.count() == 3


def test_a_blocked_window_is_not_made_longer_by_trying(db: None) -> None:
    fail(BY_NAME_AND_ADDRESS)
    before = SignInAttempts.objects.values_list("key", "ends_at").order_by("key")
    ends = list(before)
    with pytest.raises(TooManyAttempts):
        fail(1)
    assert list(before.all()) == ends


def test_success_takes_back_one_attempt_of_the_others(db: None) -> None:
    fail(5)
    begin_attempt(from_address(HERE), name="alice").succeeded()
    counts = SignInAttempts.objects.values_list("count", flat=True)
    assert sorted(counts) == [0, 5, 5]  # 0: that she signed in there


@pytest.mark.django_db(transaction=True)
def test_guesses_at_the_same_time_are_all_counted() -> None:
    def guess(_: int) -> bool:
        try:
            fail(1)
        except TooManyAttempts:
            return False
        else:
            return True
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        let_in = sum(pool.map(guess, range(40)))

    assert let_in == BY_NAME_AND_ADDRESS


# --- whose address it is


@pytest.mark.parametrize(
    ("trusted", "said", "expected"),
    [
        ([HERE], "198.51.100.7", "198.51.100.7"),
        (["192.0.2.0/24"], "2001:db8::7", "2001:db8::7"),
        (["192.0.2.0/24"], "::ffff:198.51.100.7", "198.51.100.7"),
        ([], "198.51.100.7", HERE),
        (["192.0.2.2"], "198.51.100.7", HERE),
        ([HERE], "", HERE),
        ([HERE], "laptop, 198.51.100.7", HERE),
    ],
)
def test_a_brokers_word_counts_once_its_address_is_trusted(
    trusted: list[str], said: str, expected: str, settings: Settings
) -> None:
    settings.TRUSTED_BROKERS = trusted
    request = RequestFactory().get("/", REMOTE_ADDR=HERE, HTTP_X_BROKER_CLIENT_IP=said)
    assert client_address(request) == expected


def test_a_broker_behind_the_proxy_is_known_by_what_the_proxy_says(
    settings: Settings,
) -> None:
    settings.BEHIND_TLS_PROXY = True
    settings.TRUSTED_BROKERS = ["198.51.100.7"]
    request = RequestFactory().get(
        "/",
        REMOTE_ADDR=HERE,
        HTTP_X_FORWARDED_FOR="10.9.9.9, 198.51.100.7",
        HTTP_X_BROKER_CLIENT_IP="10.0.0.5",
    )
    assert client_address(request) == "10.0.0.5"


@pytest.mark.parametrize(
    ("behind_proxy", "forwarded", "expected"),
    [
        (False, "198.51.100.7", HERE),
        (True, "198.51.100.7", "198.51.100.7"),
        (True, "made-up, 203.0.113.9, 198.51.100.7", "198.51.100.7"),
        (True, "", HERE),
    ],
)
def test_the_address_is_the_one_that_nobody_can_make_up(
    behind_proxy: bool, forwarded: str, expected: str, settings: Settings
) -> None:
    settings.BEHIND_TLS_PROXY = behind_proxy
    request = RequestFactory().get("/", REMOTE_ADDR=HERE)
    if forwarded:
        request.META["HTTP_X_FORWARDED_FOR"] = forwarded
    assert client_address(request) == expected
    assert client_address(None) == ""
