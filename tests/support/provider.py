"""A real provider of OpenID Connect, run in a thread, and people in their browsers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from django.test import Client
from oidc_provider_mock import run_server_in_thread
from pytest_django import Settings

from provisioner.single_sign_on import provider as provider_module

ADMINISTRATORS = "cloneyard-admins"
Tell = Callable[..., None]


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with run_server_in_thread() as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture
def sso(settings: Settings, issuer: str, db: None) -> str:
    """Cloneyard with this provider, as settings.py would have it."""
    settings.OIDC_ISSUER = issuer
    settings.OIDC_NAME = "Example"
    settings.OIDC_RP_CLIENT_ID = "cloneyard"
    settings.OIDC_RP_CLIENT_SECRET = "secret"
    settings.OIDC_ADMINISTRATORS = [ADMINISTRATORS]
    settings.AUTHENTICATION_BACKENDS = [
        *settings.AUTHENTICATION_BACKENDS,
        "provisioner.single_sign_on.backends.SingleSignOn",
    ]
    settings.OIDC_VERIFY_KID = False  # this provider's keys have no ids
    settings.ALLOWED_HOSTS = ["localhost"]
    provider_module._read.clear()
    return issuer


@pytest.fixture
def tell(sso: str) -> Tell:
    """Tell the provider what it knows of a person."""

    def put(sub: str, **claims: Any) -> None:
        requests.put(f"{sso}/users/{sub}", json=claims, timeout=10).raise_for_status()

    return put


def go(path: str = "/single-sign-on/", *, browser: Client | None = None) -> Any:
    """Follow the link; return what the browser has, and the provider's address."""
    browser = browser or Client(HTTP_HOST="localhost")
    return browser, browser.get(path)["Location"]


def agree(address: str, *, sub: str, **form: str) -> str:
    """Sign in at the provider; return the path that it leads back to."""
    answer = requests.post(
        address, data={"sub": sub, **form}, allow_redirects=False, timeout=10
    )
    back = urlsplit(answer.headers["Location"])
    assert back.path == "/single-sign-on/callback/"
    return f"{back.path}?{back.query}"


def sign_in(sub: str, *, path: str = "/single-sign-on/") -> tuple[Client, Any]:
    browser, address = go(path)
    return browser, browser.get(agree(address, sub=sub))
