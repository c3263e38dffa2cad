"""Redirect to the provider, and take its answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import jwt
import requests
import structlog
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from mozilla_django_oidc.views import (
    OIDCAuthenticationCallbackView,
    OIDCAuthenticationRequestView,
)

from provisioner.accounts.attempts import TooManyAttempts, count_visit
from provisioner.accounts.refusals import SignInRefused
from provisioner.identities.places import place_to_ask
from provisioner.identities.refusals import ProviderSilent, TooManySignIns
from provisioner.single_sign_on.provider import provider_setting
from provisioner.single_sign_on.refusals import AnswerNotValid

log = structlog.get_logger(__name__)

# Everybody of a large office, in the morning: in five minutes from one address.
BEGUN_AT_AN_ADDRESS = 2000

View = Callable[[HttpRequest], HttpResponse]


class Begin(OIDCAuthenticationRequestView):  # type: ignore[misc]  # has no types
    """Redirect to the provider."""

    get_settings = staticmethod(provider_setting)

    def get(self, request: HttpRequest) -> HttpResponse:
        """Keep state and nonce in a session, and redirect there.

        Raises: TooManyAttempts: each is a row, whoever asks.
        """
        count_visit(request, what="single sign-on", most=BEGUN_AT_AN_ADDRESS)
        answer: HttpResponse = super().get(request)
        return answer


class Callback(OIDCAuthenticationCallbackView):  # type: ignore[misc]  # has no types
    """Sign somebody in who comes back from the provider."""

    get_settings = staticmethod(provider_setting)

    def get(self, request: HttpRequest) -> HttpResponse:
        """Sign in, or refuse. The library would sign out whoever opens `?error=`."""
        if "error" in request.GET:
            raise SignInRefused
        answer: HttpResponse = super().get(request)
        return answer

    def login_failure(self) -> HttpResponse:
        """Refuse if the provider said no, or the person cancelled."""
        raise SignInRefused


def _says_refusals(view: View) -> View:
    """Say on the sign-in page why somebody was not signed in."""

    @wraps(view)
    def wrapped(request: HttpRequest) -> HttpResponse:
        if not settings.OIDC_ISSUER:
            raise Http404
        try:
            with place_to_ask():
                return view(request)
        except SignInRefused as refusal:
            why = refusal
        except TooManyAttempts:
            why = TooManySignIns()
        except requests.HTTPError:
            log.exception("single_sign_on_failed")
            reason = "it refused to say who you are; the log of the web server says why"
            why = AnswerNotValid(provider=settings.OIDC_NAME, reason=reason)
        except requests.RequestException:
            log.exception("single_sign_on_failed")
            why = ProviderSilent(provider=settings.OIDC_NAME)
        except (SuspiciousOperation, jwt.PyJWTError, KeyError):
            log.exception("single_sign_on_failed")
            reason = "it does not belong to a sign-in that this browser began"
            why = AnswerNotValid(provider=settings.OIDC_NAME, reason=reason)
        log.warning("single_sign_on_refused", code=why.code, sentence=why.sentence)
        messages.error(request, why.sentence)
        return redirect("login")

    return login_not_required(wrapped)


begin = _says_refusals(Begin.as_view())
callback = _says_refusals(Callback.as_view())
