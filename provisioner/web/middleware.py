"""What every request passes through, pages and API alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from django.utils import timezone
from django.utils.cache import patch_cache_control

from provisioner.accounts import origin, zones
from provisioner.accounts.models import User
from provisioner.dashboard.views import health
from provisioner.lib.terminal import harmless_page

Handler = Callable[[HttpRequest], HttpResponse]


class ProbeMiddleware:
    """Answer probes before anything else is asked: they come from inside, by plain HTTP
    and with an address for a name, so neither ALLOWED_HOSTS nor HTTPS is for them.

    At their own address there is nothing else: the proxy, whose headers are trusted,
    does not stand before it.
    """

    views: ClassVar[dict[str, Handler]] = {
        "/healthz": health.healthz,
        "/readyz": health.readyz,
    }

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        view = self.views.get(request.path_info)
        if view is not None:
            return view(request)
        probed_port = settings.HEALTH_BIND.rpartition(":")[2]
        if probed_port and request.META.get("SERVER_PORT") == probed_port:
            return HttpResponseNotFound()
        return self.get_response(request)


class PersonalMiddleware:
    """Keep answers out of caches, shared ones and the browser's: they are personal.

    Static files do not come by here.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self.get_response(request)
        patch_cache_control(answer, private=True, no_store=True)
        return answer


class HarmlessMiddleware:
    """Let no page have control characters, wherever its texts are from.

    Comes after CommonMiddleware, which says how long an answer is.
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
    """Say where a request comes from, for the trail. Comes after authentication.

    A token is noted later, where the API has checked it.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with origin.coming_from(origin.origin_of(request)):
            return self.get_response(request)

    def process_view(self, request: HttpRequest, *args: object) -> None:
        """Note whose session it is, where there is one."""
        key = request.session.session_key
        if key is not None and isinstance(request.user, User):
            origin.signed_in(request.user, via=origin.by_session(key))


class ZoneMiddleware:
    """Show times in the reader's zone, on pages alone. Comes after authentication.

    The API answers in UTC, whoever asks.
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
