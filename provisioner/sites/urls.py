"""Addresses of sites."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.sites.api.sites import SiteViewSet
from provisioner.sites.views import sites
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Sites",
        section=Section.STORAGE,
        url_name="site-list",
        covers=("site-",),
        rank=10,
        is_for=administrators,
    )
)

urlpatterns: list[URLPattern] = [
    path("sites/", sites.site_list, name="site-list"),
    path("sites/new/", sites.site_create, name="site-create"),
    path("sites/<int:pk>/", sites.site_detail, name="site-detail"),
    path("sites/<int:pk>/edit/", sites.site_edit, name="site-edit"),
    path("sites/<int:pk>/test/", sites.site_test, name="site-test"),
    path("sites/<int:pk>/try/", sites.site_try_out, name="site-try-out"),
]

api_routes = [Route("v1/sites", SiteViewSet, "site")]
