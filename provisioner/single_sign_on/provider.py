"""The provider's discovery document, as settings of mozilla-django-oidc.

Source: OpenID Connect Discovery 1.0, 4.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from mozilla_django_oidc.utils import import_from_settings

from provisioner.identities.refusals import ProviderSilent
from provisioner.lib.bounded_answers import AnswerTooLong, BoundedAnswers
from provisioner.single_sign_on.refusals import AnswerNotValid

ANSWERS_WITHIN_SECONDS = 5
# From the first byte to the last.
ANSWERS_LAST_SECONDS = 10.0
LONGEST_ANSWER_BYTES = 1_000_000
READ_AGAIN_AFTER_SECONDS = 3600.0
_DISCOVERED = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
}

_read: dict[str, tuple[float, dict[str, Any]]] = {}


def provider_setting(name: str, *default: Any) -> Any:
    """Return a setting, or what the provider says where its endpoints are.

    Raises: ProviderSilent, AnswerNotValid.
    """
    said = _DISCOVERED.get(name)
    if said is None:
        return import_from_settings(name, *default)
    endpoint = _document()[said]
    # The secret of this client goes there.
    scheme = f"{urlsplit(settings.OIDC_ISSUER).scheme}://"
    if not isinstance(endpoint, str) or not endpoint.startswith(("https://", scheme)):
        raise AnswerNotValid(
            provider=settings.OIDC_NAME, reason=f"its {said} is no https:// address"
        )
    return endpoint


@contextmanager
def reads_object(what: str) -> Iterator[None]:
    """Refuse whatever is not the JSON object that the provider has to send.

    The library reads members of anything, and these errors are how it fails.

    Raises: AnswerNotValid.
    """
    try:
        yield
    except (
        *(requests.JSONDecodeError, RecursionError),
        *(AttributeError, KeyError, TypeError),
    ) as error:
        reason = f"its {what} is not the JSON object that OpenID Connect asks for"
        raise AnswerNotValid(provider=settings.OIDC_NAME, reason=reason) from error


class _Answers(BoundedAnswers):
    most_bytes = LONGEST_ANSWER_BYTES
    within_seconds = ANSWERS_LAST_SECONDS


def ask(method: str, address: str, *, what: str, **sent: Any) -> requests.Response:
    """Ask the provider, and return its whole answer, whatever its status.

    It follows no redirect: OpenID Connect has none here, and one could lead the secret
    of this client elsewhere.

    Raises: AnswerNotValid (it is too long); requests.RequestException.
    """
    with requests.Session() as session:
        for scheme in ("https://", "http://"):
            session.mount(scheme, _Answers())
        try:
            return session.request(
                method,
                address,
                timeout=ANSWERS_WITHIN_SECONDS,
                allow_redirects=False,
                **sent,
            )
        except AnswerTooLong as error:
            reason = f"its {what} is longer than {LONGEST_ANSWER_BYTES:,} bytes"
            raise AnswerNotValid(provider=settings.OIDC_NAME, reason=reason) from error


def require_success(answer: requests.Response) -> None:
    """Raises: requests.HTTPError, with the beginning of what the provider says."""
    if answer.status_code != 200:
        raise requests.HTTPError(
            f"{answer.status_code} from {answer.url}: {answer.text[:1000]!r}",
            response=answer,
        )


def dict_of(said: Any) -> dict[str, Any]:
    """Return an object of JSON.

    Raises: TypeError.
    """
    if not isinstance(said, dict):
        raise TypeError(said)
    return said


def _document() -> dict[str, Any]:
    """Return the provider's document, read once an hour by each process."""
    issuer: str = settings.OIDC_ISSUER
    now = time.monotonic()
    known = _read.get(issuer)
    if known is not None and now - known[0] < READ_AGAIN_AFTER_SECONDS:
        return known[1]
    address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    try:
        answer = ask("GET", address, what="discovery document")
        require_success(answer)
    except requests.RequestException as error:
        raise ProviderSilent(provider=settings.OIDC_NAME) from error
    with reads_object("discovery document"):
        document = dict_of(answer.json())
    if document.get("issuer") != issuer:
        raise AnswerNotValid(
            provider=settings.OIDC_NAME, reason="its issuer is another than OIDC_ISSUER"
        )
    if missing := sorted({*_DISCOVERED.values()} - {*document}):
        raise AnswerNotValid(
            provider=settings.OIDC_NAME,
            reason=f"its discovery document lacks {missing[0]}",
        )
    _read[issuer] = (now, document)
    return document
