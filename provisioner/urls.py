"""Every address, by layer."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("provisioner.web.urls")),
    path("api/", include("provisioner.api.urls")),
    path("admin/", admin.site.urls),
]
