"""Browsers in which people have signed in."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from provisioner.accounts.models import User
from tests.support.factories import UserFactory


def browser_of(user: User | None) -> Client:
    """Return a browser in which the user has signed in, or nobody."""
    browser = Client()
    if user is not None:
        browser.force_login(user)
    return browser


def is_polling(page: str) -> bool:
    """Return whether a page asks for changes by itself."""
    return re.search(r'hx-trigger="(every|load)', page) is not None


@pytest.fixture
def as_alice(alice: User) -> Client:
    return browser_of(alice)


@pytest.fixture
def as_carol(carol: User) -> Client:
    return browser_of(carol)


@pytest.fixture
def as_admin(admin: User) -> Client:
    return browser_of(admin)


@pytest.fixture
def as_nobody(db: None) -> Client:
    return browser_of(None)


@pytest.fixture
def as_newcomer(db: None) -> Client:
    """Somebody without uid and gid."""
    return browser_of(UserFactory(username="newcomer", uid=None, gid=None))
