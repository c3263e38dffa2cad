"""Clients of the API that send people's tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
