"""Every address, by layer."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, include, path
from django.views import defaults

from provisioner.api import errors as api_errors

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("provisioner.web.urls")),
    path("api/", include("provisioner.api.urls")),
    path("admin/", admin.site.urls),
]


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer for a bug of ours: JSON to a script, a page to a person."""
    if request.path.startswith("/api/"):
        return api_errors.server_error(request)
    return defaults.server_error(request)


handler500 = server_error
