"""Middleware for pages and API."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_cache_control

from provisioner.accounts import origin, zones
from provisioner.accounts.models import User
from provisioner.accounts.sessions import SessionStore
from provisioner.lib import request_ids
from provisioner.lib.places import TooManyDownloads
from provisioner.lib.terminal import harmless_page


class RequestIdMiddleware:
    """Give each request its id: in its answer, its log lines, and what it starts.

    A caller may name it in X-Request-ID, such as a proxy that logs it, too.
    """

    header = "HTTP_X_REQUEST_ID"

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = request_ids.named_or_new(request.META.get(self.header, ""))
        request.META[self.header] = request_id
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            answer = self.get_response(request)
        answer["X-Request-ID"] = request_id
        return answer


class PersonalMiddleware:
    """Keep personal answers out of all caches.

    Static files are served before this middleware.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self.get_response(request)
        patch_cache_control(answer, private=True, no_store=True)
        return answer


class HarmlessMiddleware:
    """Remove control characters from pages, wherever their texts come from.

    Runs inside CommonMiddleware, which sets Content-Length.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self.get_response(request)
        is_page = answer.get("Content-Type", "").startswith("text/html")
        if is_page and not answer.streaming:
            answer.content = harmless_page(answer.content)
        return answer


class OriginMiddleware:
    """Record where a request comes from, for the audit log.

    Comes after authentication. The API records a token later, once it is checked.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with origin.coming_from(origin.origin_of(request)):
            return self.get_response(request)

    def process_view(self, request: HttpRequest, *args: object) -> None:
        """Record whose session it is, if there is one."""
        key = request.session.session_key
        if key is not None and isinstance(request.user, User):
            origin.signed_in(request.user, via=origin.by_session(key))
            if isinstance(request.session, SessionStore):
                request.session.note_use()


class ZoneMiddleware:
    """Show times on pages in the reader's time zone. Comes after authentication.

    The API always answers in UTC.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith("/api/"):
            return self.get_response(request)
        user = request.user if isinstance(request.user, User) else None
        browsers = request.COOKIES.get(zones.COOKIE, "")
        with timezone.override(zones.zone_of(user, browsers=browsers)):
            return self.get_response(request)


class DownloadsMiddleware:
    """Answer with a page if too many downloads hold threads."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(
        self, request: HttpRequest, error: Exception
    ) -> HttpResponse | None:
        if not isinstance(error, TooManyDownloads):
            return None
        context = {"sentence": error.sentence}
        return render(request, "429.html", context, status=error.http_status)


Handler = Callable[[HttpRequest], HttpResponse]
