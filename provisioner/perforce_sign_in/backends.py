"""Check a password or ticket at the Perforce server."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from provisioner.accounts.backends import SessionBackend
from provisioner.accounts.models import User
from provisioner.perforce_sign_in.actions import perforce_sign_in


class PerforcePasswords(SessionBackend):
    """Sign in whom Perforce knows by name and password, or by a ticket in its place.

    What Django does with a signed-in account stays its own: it leaves out closed ones.
    """

    via = "Perforce"

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        return perforce_sign_in(name=username or "", secret=password or "")
