"""Authentication: by token or session; by name and password only to get a token."""

from __future__ import annotations

import re
from typing import Any

from knox.auth import TokenAuthentication as KnoxAuthentication
from rest_framework import status
from rest_framework.authentication import BasicAuthentication
from rest_framework.exceptions import APIException, AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from provisioner.accounts import origin, permissions
from provisioner.accounts.attempts import TooManyAtOnce, TooManyAttempts, begin_attempt
from provisioner.accounts.models import ApiToken, User
from provisioner.accounts.refusals import OutOfScope, SignInRefused
from provisioner.accounts.throttling import (
    TooManyRequests,
    is_use_noted,
    note_last_use,
)
from provisioner.accounts.tokens import forget_expired, has_expired


class Throttled(APIException):
    """Too many attempts. Retry-After says when to try again."""

    status_code = status.HTTP_429_TOO_MANY_REQUESTS
    default_code = "throttled"

    def __init__(
        self, refusal: TooManyAttempts | TooManyAtOnce | TooManyRequests
    ) -> None:
        super().__init__(str(refusal))
        self.wait = refusal.seconds  # Django REST framework makes the header of it


TOKEN = re.compile(rb"[0-9a-f]{64}")


class TokenAuthentication(KnoxAuthentication):
    """`Authorization: Bearer TOKEN`."""

    def authenticate_credentials(self, token: bytes) -> Any:
        # What is no token is not looked up: the database refuses NUL bytes, and
        # knox decodes without asking whether the bytes are UTF-8.
        if not TOKEN.fullmatch(token):
            raise AuthenticationFailed("Invalid token.")
        user, found = super().authenticate_credentials(token)  # type: ignore[no-untyped-call]
        user.token = found
        note_last_use(found)
        origin.signed_in(user, via=origin.by_token(found))
        return user, found

    def _cleanup_token(self, auth_token: ApiToken) -> bool:
        """Return whether the token has expired; it is deleted then.

        Other expired tokens of the person are deleted once a minute. Knox itself would
        read all of them with each request, and go by this process's clock.
        """
        is_late = has_expired(auth_token)
        if is_late or not is_use_noted(auth_token):
            forget_expired(auth_token.user)
        return is_late


class PasswordAuthentication(BasicAuthentication):
    """HTTP basic. The answer is the same for a wrong name and a wrong password."""

    www_authenticate_realm = "cloneyard"

    def authenticate_credentials(
        self, userid: str, password: str, request: Request | None = None
    ) -> Any:
        if "\0" in userid:
            raise AuthenticationFailed("Invalid username/password.")
        try:
            attempt = begin_attempt(request and request._request, name=userid)
        except TooManyAttempts as refusal:
            raise Throttled(refusal) from None
        try:
            user, _ = super().authenticate_credentials(userid, password, request)
        except SignInRefused:
            attempt.withdrawn()
            raise
        attempt.succeeded()
        assert isinstance(user, User)
        origin.signed_in(user, via=origin.means_of(vars(user)["backend"]))
        return user, None


class WithinScope(BasePermission):
    """Keep tokens that read mounts away from views without `is_for_hosts`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        scope = user.scope if isinstance(user, User) else None
        is_for_mounts = scope is not None and scope.reads_mounts
        if is_for_mounts and not getattr(view, "is_for_hosts", False):
            raise OutOfScope(what="anything but reading mounts")
        return True


class ForAdministrators(BasePermission):
    """Keep everybody else away from views with `is_for_administrators`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if getattr(view, "is_for_administrators", False):
            user = request.user
            is_one = isinstance(user, User) and permissions.can_administer(user)
            permissions.require(is_one)
        return True
