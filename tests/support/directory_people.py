"""People of a directory in their browsers."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import SESSION_KEY
from django.test import Client

from tests.support.slapd import PASSWORD

ADMINISTRATORS = "cloneyard-admins"


def sign_in(name: str, password: str = PASSWORD) -> tuple[Client, Any]:
    browser = Client()
    form = {"username": name, "password": password}
    return browser, browser.post("/login/", form)


def is_in(browser: Client) -> bool:
    return SESSION_KEY in browser.session
