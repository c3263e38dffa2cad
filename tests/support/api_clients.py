"""Clients of the API that send people's tokens."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create

if TYPE_CHECKING:
    from rest_framework.response import _MonkeyPatchedResponse as ApiAnswer
else:
    from rest_framework.response import Response as ApiAnswer

__all__ = ["ApiAnswer"]


class JsonClient(APIClient):
    default_format = "json"


def api_of(user: User | None) -> APIClient:
    """Return a client that sends the user's token, or none."""
    client = JsonClient()
    if user is not None:
        _, secret = token_create(by=user)
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


def basic(name: str, password: str) -> str:
    """Return the header that names a person and their password."""
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"


def token_for_password(name: str, password: str, **sent: Any) -> ApiAnswer:
    return APIClient().post(
        "/api/v1/tokens",
        headers={"Authorization": basic(name, password)},
        format="json",
        **sent,
    )


@pytest.fixture
def api_as_alice(alice: User) -> APIClient:
    return api_of(alice)


@pytest.fixture
def api_as_carol(carol: User) -> APIClient:
    return api_of(carol)


@pytest.fixture
def api_as_admin(admin: User) -> APIClient:
    return api_of(admin)


@pytest.fixture
def api_as_nobody(db: None) -> APIClient:
    return api_of(None)
