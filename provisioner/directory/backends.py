"""Check a password at the directory."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from provisioner.accounts.backends import SessionBackend
from provisioner.accounts.models import User
from provisioner.directory.actions.sign_in import directory_sign_in


class DirectoryPasswords(SessionBackend):
    """Sign in whom the directory knows by name and password.

    What Django does with a signed-in account stays its own: it leaves out closed ones.
    """

    via = "LDAP"

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        return directory_sign_in(name=username or "", password=password or "")
