"""Passwords that are kept here, and work while everything else is down."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from provisioner.accounts import origin
from provisioner.accounts.backends import SessionBackend
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.identities.queries import (
    is_break_glass,
    password_keeper,
    people_come_from_elsewhere,
)


class LocalPasswords(SessionBackend):
    """Check a password that is kept here, unless somebody else checks the account's.

    It asks nothing but the database. A break-glass administrator's sign-in is recorded
    whatever it is for, pages or the API; notify/receivers.py mails it.
    """

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        account = super().authenticate(request, username, password, **kwargs)
        if not isinstance(account, User) or password_keeper(account):
            return None
        if people_come_from_elsewhere() and is_break_glass(account):
            with origin.coming_by(origin.current().via or "password"):
                record_event(
                    account,
                    kind="break_glass_sign_in",
                    message="Signed in as a break-glass administrator, with the "
                    "password kept here.",
                    actor=account,
                )
        return account
