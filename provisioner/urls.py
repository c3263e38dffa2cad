"""Every address, by layer."""

from __future__ import annotations

import sys

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.urls import URLPattern, URLResolver, include, path
from django.views import defaults

from provisioner.api import errors as api_errors
from provisioner.lib.databases import DATABASE_WENT_AWAY

# As long as a database takes to come up again, more or less.
RETRY_AFTER_SECONDS = 5

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("provisioner.web.urls")),
    path("api/", include("provisioner.api.urls")),
    path("admin/", admin.site.urls),
]


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer for a bug of ours, or for a database that is away: 500 or 503.

    JSON to a script, a page to a person. What was raised is still being handled here.
    """
    is_api = request.path.startswith("/api/")
    if not isinstance(sys.exception(), DATABASE_WENT_AWAY):
        ours = api_errors.server_error if is_api else defaults.server_error
        return ours(request)
    if is_api:
        answer: HttpResponse = api_errors.database_away()
    else:
        answer = HttpResponse(loader.get_template("503.html").render(), status=503)
    answer["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return answer


handler500 = server_error
