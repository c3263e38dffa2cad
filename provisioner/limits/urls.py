"""URLs of limits."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.limits import views
from provisioner.limits.api import LimitViewSet
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Limits",
        section=Section.STORAGE,
        url_name="limit-list",
        rank=20,
        is_for=administrators,
    ),
)

urlpatterns: list[URLPattern] = [path("limits/", views.limit_list, name="limit-list")]

api_routes = [Route("v1/limits", LimitViewSet, "limit")]
