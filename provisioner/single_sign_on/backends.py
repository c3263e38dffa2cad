"""Check what the provider sends after somebody has signed in there."""

from __future__ import annotations

import re
from typing import Any

import jwt
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

from provisioner.accounts.backends import SessionBackend
from provisioner.accounts.models import User
from provisioner.single_sign_on.actions import account_sign_in
from provisioner.single_sign_on.provider import (
    ask,
    dict_of,
    provider_setting,
    reads_object,
    require_success,
)
from provisioner.single_sign_on.refusals import AnswerNotValid

# Source: OpenID Connect Core 1.0, 2.
SUBJECT = re.compile(r"[\x20-\x7e]{1,255}")


class SingleSignOn(OIDCAuthenticationBackend):  # type: ignore[misc]  # has no types
    """Find accounts by issuer and subject; the library would match mail addresses.

    It would also read answers of any length, so three of its methods are written anew.
    """

    via = "OpenID Connect"
    get_settings = staticmethod(provider_setting)
    # The library's lets in who is no longer active.
    get_user = SessionBackend.get_user

    def __init__(self) -> None:
        """Ask the provider nothing: each request with a session makes one of these."""

    def authenticate(self, request: HttpRequest | None, **kwargs: Any) -> User | None:
        """Return the account of the person who came back from the provider.

        Only the callback has a nonce. Without this check the library would take a code
        from the address of the password form, with neither state nor PKCE.
        """
        if not kwargs.get("nonce"):
            return None
        super().__init__()
        account: User | None = super().authenticate(request, **kwargs)
        return account

    def get_token(self, payload: dict[str, Any]) -> dict[str, Any]:
        what = "token answer"
        answer = ask("POST", self.OIDC_OP_TOKEN_ENDPOINT, what=what, data=payload)
        require_success(answer)
        with reads_object(what):
            return dict_of(answer.json())

    def retrieve_matching_jwk(self, token: str) -> jwt.PyJWK:
        """Return the provider's key by which the token says that it is signed.

        Raises: SuspiciousOperation (there is none).
        """
        what = "key set"
        answer = ask("GET", self.OIDC_OP_JWKS_ENDPOINT, what=what)
        require_success(answer)
        wanted = jwt.get_unverified_header(token)
        has_ids = self.get_settings("OIDC_VERIFY_KID", True)
        with reads_object(what):
            for key in answer.json()["keys"]:
                is_named = not has_ids or key["kid"] == wanted["kid"]
                if is_named and key.get("alg", wanted["alg"]) == wanted["alg"]:
                    return jwt.PyJWK(key)
        raise SuspiciousOperation("No key of the provider is the token's.")

    def get_userinfo(
        self, access_token: str, id_token: str, payload: dict[str, Any]
    ) -> dict[str, Any]:
        what = "userinfo"
        bearer = {"Authorization": f"Bearer {access_token}"}
        answer = ask("GET", self.OIDC_OP_USER_ENDPOINT, what=what, headers=bearer)
        require_success(answer)
        with reads_object(what):
            return dict_of(answer.json())

    def verify_token(self, token: str, **kwargs: Any) -> dict[str, Any]:
        """Check signature, time and nonce, then for whom and by whom it was made.

        The library leaves out the last two, and takes a token that never expires.

        Source: OpenID Connect Core 1.0, 3.1.3.7.
        """
        payload: dict[str, Any] = super().verify_token(token, **kwargs)
        audience = payload.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        made_for = payload.get("azp", settings.OIDC_RP_CLIENT_ID)
        if settings.OIDC_RP_CLIENT_ID not in audiences or (
            made_for != settings.OIDC_RP_CLIENT_ID
        ):
            raise _not_valid("it was made for another application")
        if payload.get("iss") != settings.OIDC_ISSUER:
            raise _not_valid("it was made by another provider")
        if "exp" not in payload:
            raise _not_valid("it does not say when it expires")
        if not SUBJECT.fullmatch(str(payload.get("sub", ""))):
            raise _not_valid("it does not say who signed in")
        return payload

    def get_or_create_user(
        self, access_token: str, id_token: str, payload: dict[str, Any]
    ) -> User:
        about = self.get_userinfo(access_token, id_token, payload)
        # Source: OpenID Connect Core 1.0, 5.3.2.
        if about.get("sub") != payload["sub"]:
            raise _not_valid("its token and its userinfo are about two people")
        return account_sign_in({**payload, **about})


def _not_valid(reason: str) -> AnswerNotValid:
    return AnswerNotValid(provider=settings.OIDC_NAME, reason=reason)
