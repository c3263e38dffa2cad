"""Who asks: a token or a session; name and password only to get a token."""

from __future__ import annotations

import re
from typing import Any

from knox.auth import TokenAuthentication as KnoxAuthentication
from rest_framework.authentication import BasicAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

TOKEN = re.compile(rb"[0-9a-f]{64}")


class TokenAuthentication(KnoxAuthentication):
    """`Authorization: Bearer TOKEN`."""

    def authenticate_credentials(self, token: bytes) -> Any:
        # What is no token is not looked up: the database refuses NUL bytes, and
        # knox decodes without asking whether the bytes are UTF-8.
        if not TOKEN.fullmatch(token):
            raise AuthenticationFailed("Invalid token.")
        return super().authenticate_credentials(token)  # type: ignore[no-untyped-call]


class PasswordAuthentication(BasicAuthentication):
    """HTTP basic. The answer is the same for a wrong name and a wrong password."""

    www_authenticate_realm = "cloneyard"

    def authenticate_credentials(
        self, userid: str, password: str, request: Request | None = None
    ) -> Any:
        if "\0" in userid:
            raise AuthenticationFailed("Invalid username/password.")
        return super().authenticate_credentials(userid, password, request)
