"""POST, GET and DELETE /api/v1/tokens."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from provisioner.accounts.models import ApiToken, User
from provisioner.accounts.tokens import token_create
from provisioner.audit_log.models import Event
from provisioner.lib import clocks
from tests.support.api_clients import JsonClient, api_of, basic
from tests.support.factories import PASSWORD, UserFactory

TOKENS = "/api/v1/tokens"


def test_a_password_buys_a_token_that_opens_the_door(
    api_as_nobody: APIClient, alice: User, settings: Settings
) -> None:
    response = api_as_nobody.post(
        TOKENS, {"name": "laptop"}, HTTP_AUTHORIZATION=basic("alice", PASSWORD)
    )

    assert response.status_code == 201
    body = response.json()
    assert body["name"] == "laptop"
    assert body["token"].startswith(body["prefix"])
    assert response["Location"].endswith(f"/api/v1/tokens/{body['prefix']}")
    lives = dt.datetime.fromisoformat(body["expires_at"]) - timezone.now()
    assert lives.days + 1 == settings.API_TOKEN_DAYS
    listed = api_as_nobody.get(TOKENS, HTTP_AUTHORIZATION=f"Bearer {body['token']}")
    assert listed.status_code == 200


def test_a_token_is_kept_as_a_hash_alone(api_as_nobody: APIClient, alice: User) -> None:
    response = api_as_nobody.post(TOKENS, HTTP_AUTHORIZATION=basic("alice", PASSWORD))

    secret = response.json()["token"]
    row = ApiToken.objects.values().get()
    assert secret not in map(str, row.values())
    assert row["token_key"] == secret[:15]


@pytest.mark.parametrize(
    ("username", "password"),
    [
        ("alice", "wrong"),
        ("nobody-of-that-name", PASSWORD),
        ("former", PASSWORD),
        ("alice\0", PASSWORD),
        ("", ""),
    ],
)
def test_wrong_credentials_do_not_say_what_is_wrong(
    api_as_nobody: APIClient, alice: User, username: str, password: str
) -> None:
    UserFactory.create(username="former", is_active=False)

    response = api_as_nobody.post(TOKENS, HTTP_AUTHORIZATION=basic(username, password))

    assert response.status_code == 401
    assert response.json() == {
        "detail": "Invalid username/password.",
        "code": "authentication_failed",
        "request_id": response["X-Request-ID"],
    }


@pytest.mark.parametrize("header", ["Basic", "Basic !!", "Basic YQ==", "Basic a b"])
def test_a_malformed_basic_header_is_refused(
    api_as_nobody: APIClient, header: str
) -> None:
    response = api_as_nobody.post(TOKENS, HTTP_AUTHORIZATION=header)

    assert response.status_code == 401
    assert response.json()["code"] == "authentication_failed"


def test_nobody_is_asked_for_a_password(api_as_nobody: APIClient) -> None:
    response = api_as_nobody.post(TOKENS)

    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Basic realm="cloneyard"'
    assert response.json()["code"] == "not_authenticated"


def test_a_token_does_not_buy_another(api_as_alice: APIClient) -> None:
    assert api_as_alice.post(TOKENS).status_code == 401


def test_a_session_buys_a_token(alice: User) -> None:
    client = JsonClient()
    client.force_login(alice)

    assert client.post(TOKENS).status_code == 201


def test_a_session_without_its_csrf_token_is_refused(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)

    response = client.post(TOKENS, content_type="application/json")

    assert response.status_code == 403
    assert response.json()["code"] == "permission_denied"


def test_a_name_that_is_too_long_is_refused(alice: User) -> None:
    client = JsonClient()
    client.force_login(alice)

    response = client.post(TOKENS, {"name": "x" * 101})

    assert response.status_code == 400
    assert list(response.json()["fields"]) == ["name"]


def test_the_list_holds_ones_own_live_tokens_and_no_secret(
    api_as_alice: APIClient, alice: User, carol: User
) -> None:
    ApiToken.objects.create(user=alice, expiry=dt.timedelta(seconds=-1))
    token_create(by=carol)
    token_create(by=alice, name="ci")

    response = api_as_alice.get(TOKENS)

    results = response.json()["results"]
    assert [token["name"] for token in results] == ["ci", ""]
    assert all(
        {"prefix", "name", "owner", "expires_at", "last_used_at"} <= set(token)
        and "token" not in token
        for token in results
    )


def test_a_revoked_token_opens_nothing(api_as_alice: APIClient, alice: User) -> None:
    token, secret = token_create(by=alice)

    response = api_as_alice.delete(f"{TOKENS}/{token.token_key}")

    assert response.status_code == 204
    refused = APIClient().get(TOKENS, HTTP_AUTHORIZATION=f"Bearer {secret}")
    assert refused.status_code == 401


def test_a_stranger_revokes_no_token(alice: User, api_as_carol: APIClient) -> None:
    token, _ = token_create(by=alice)

    assert api_as_carol.delete(f"{TOKENS}/{token.token_key}").status_code == 404
    assert ApiToken.objects.filter(pk=token.pk).exists()


def test_an_administrator_sees_and_revokes_all_tokens(
    api_as_alice: APIClient, api_as_admin: APIClient
) -> None:
    own = api_as_admin.get(TOKENS).json()["results"]
    everybodys = api_as_admin.get(f"{TOKENS}?everybody=true").json()["results"]
    [hers] = [token for token in everybodys if token["owner"] == "alice"]

    assert {token["owner"] for token in own} == {"admin"}
    assert api_as_admin.delete(f"{TOKENS}/{hers['prefix']}").status_code == 204
    assert api_as_alice.get(TOKENS).status_code == 401
    assert Event.objects.get(kind="token_revoked").actor_name == "admin"


def test_others_do_not_list_everybodys_tokens(api_as_alice: APIClient) -> None:
    response = api_as_alice.get(f"{TOKENS}?everybody=true")

    assert (response.status_code, response.json()["code"]) == (403, "not_allowed")


def test_when_a_token_was_last_used_is_kept(alice: User) -> None:
    client = api_of(alice)
    assert ApiToken.objects.get().last_used_at is None

    [listed] = client.get(TOKENS).json()["results"]

    used_at = dt.datetime.fromisoformat(listed["last_used_at"])
    assert abs(used_at - timezone.now()) < dt.timedelta(minutes=1)


def test_nobody_lists_or_revokes(api_as_nobody: APIClient, alice: User) -> None:
    token, _ = token_create(by=alice)

    assert api_as_nobody.get(TOKENS).status_code == 401
    assert api_as_nobody.delete(f"{TOKENS}/{token.token_key}").status_code == 401


def test_a_prefix_that_names_no_token_is_not_found(api_as_alice: APIClient) -> None:
    assert api_as_alice.delete(f"{TOKENS}/not-a-prefix").status_code == 404
    assert api_as_alice.delete(f"{TOKENS}/%00").status_code == 404


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer a b", "Bearer \xff", "Bearer a\0", f"Bearer {'0' * 64}"],
)
def test_what_is_no_token_opens_nothing(api_as_nobody: APIClient, header: str) -> None:
    response = api_as_nobody.get(TOKENS, HTTP_AUTHORIZATION=header)

    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Bearer"
    assert response.json()["code"] == "authentication_failed"


def test_an_expired_token_opens_nothing(api_as_nobody: APIClient, alice: User) -> None:
    _, secret = ApiToken.objects.create(user=alice, expiry=dt.timedelta(seconds=-1))

    response = api_as_nobody.get(TOKENS, HTTP_AUTHORIZATION=f"Bearer {secret}")

    assert response.status_code == 401


def test_tokens_that_expired_go_with_the_first_use_of_another_in_a_minute(
    alice: User,
) -> None:
    ApiToken.objects.create(user=alice, expiry=dt.timedelta(seconds=-1))
    client = api_of(alice)

    client.get(TOKENS)

    assert alice.auth_token_set.count() == 1
    late, _ = ApiToken.objects.create(user=alice, expiry=dt.timedelta(seconds=-1))
    client.get(TOKENS)
    assert late in alice.auth_token_set.all(), "a request reads one token alone"


def test_a_token_that_expires_between_two_uses_opens_nothing(alice: User) -> None:
    client = api_of(alice)
    client.get(TOKENS)
    late = timezone.now() - dt.timedelta(seconds=1)
    alice.auth_token_set.update(expiry=late)

    assert client.get(TOKENS).status_code == 401
    assert not alice.auth_token_set.exists()


@pytest.mark.parametrize("days_off", [-400, 400])
def test_the_databases_clock_says_when_a_token_expires(
    alice: User, monkeypatch: pytest.MonkeyPatch, days_off: int
) -> None:
    """That of a web server may be off."""
    ApiToken.objects.create(user=alice, expiry=dt.timedelta(seconds=-1))
    wrong = timezone.now() + dt.timedelta(days=days_off)
    monkeypatch.setattr(timezone, "now", lambda: wrong)
    made, secret = token_create(by=alice, days=30)
    client = APIClient(headers={"Authorization": f"Bearer {secret}"})

    assert client.get(TOKENS).status_code == 200
    assert list(alice.auth_token_set.all()) == [made]
    made.refresh_from_db()
    assert made.expiry is not None
    lives = made.expiry - clocks.database_now()
    assert dt.timedelta(days=29) < lives <= dt.timedelta(days=30)
    made.expiry = clocks.database_now() - dt.timedelta(seconds=1)
    made.save()
    assert client.get(TOKENS).status_code == 401


def test_a_token_of_an_account_that_was_closed_opens_nothing(alice: User) -> None:
    client = api_of(alice)
    alice.is_active = False
    alice.save()

    assert client.get(TOKENS).status_code == 401
