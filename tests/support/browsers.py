"""Browsers in which people have signed in."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

import pytest
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import Client

from provisioner.accounts.models import User
from tests.support.factories import UserFactory

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as Answer
else:
    from django.http import HttpResponse as Answer

__all__ = ["Answer"]


def browser_of(user: User | None) -> Client:
    """Return a browser in which the user has signed in, or nobody."""
    browser = Client()
    if user is not None:
        browser.force_login(user)
    return browser


def post(browser: Client, address: str, **sent: object) -> Answer:
    return browser.post(address, sent)


def confirm(browser: Client, preview: Answer, address: str) -> Answer:
    """Press the button of a preview, as a browser without scripts would."""
    text = preview.content.decode()
    form = text[text.index('class="bulk-preview"') :].partition("</form")[0]
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([\w-]+)">', form)
    sent: dict[str, list[str]] = {"step": ["sure"]}
    for name, value in hidden:
        sent.setdefault(name, []).append(value)
    chosen = re.findall(r'<option value="(\w+)" selected>', form)
    return post(browser, address, **sent, **({"unsubmitted": chosen} if chosen else {}))


def downloaded(answer: HttpResponseBase) -> bytes:
    """Return what an answer streams."""
    assert isinstance(answer, StreamingHttpResponse)
    return answer.getvalue()


def rows_of(answer: HttpResponseBase) -> list[dict[str, str]]:
    """Return the rows of a table that was downloaded."""
    return list(csv.DictReader(io.StringIO(downloaded(answer).decode())))


def table(browser: Client, address: str) -> list[dict[str, str]]:
    """Download a table; return its rows."""
    return rows_of(browser.get(address))


def is_polling(page: str) -> bool:
    """Return whether a page asks for changes by itself."""
    return re.search(r'hx-trigger="(every|load delay)', page) is not None


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
    return browser_of(UserFactory.create(username="newcomer", uid=None, gid=None))
