"""Answer probes before any other middleware."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound

from provisioner.dashboard.views import health
from provisioner.web.middleware import Handler


class ProbeMiddleware:
    """Answer probes before anything else: neither ALLOWED_HOSTS nor HTTPS is for them.

    They come from inside, by plain HTTP and to a numeric address. At their own address
    nothing else is served, as the proxy whose headers are trusted is not in front of
    it.
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
