"""URLs of sites."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.sites.api.perforce_servers import PerforceServerViewSet
from provisioner.sites.api.sites import SiteViewSet
from provisioner.sites.views import pausing, perforce_servers, sites
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Sites",
        section=Section.STORAGE,
        url_name="site-list",
        covers=("site-",),
        rank=10,
        is_for=administrators,
    ),
    Place(
        title="Servers",
        section=Section.PERFORCE,
        url_name="perforce-server-list",
        covers=("perforce-server-",),
        is_for=administrators,
    ),
)

urlpatterns: list[URLPattern] = [
    path("sites/", sites.site_list, name="site-list"),
    path("sites/new/", sites.site_create, name="site-create"),
    path("sites/<int:pk>/", sites.site_detail, name="site-detail"),
    path("sites/<int:pk>/edit/", sites.site_edit, name="site-edit"),
    path("sites/<int:pk>/test/", sites.site_test, name="site-test"),
    path("sites/<int:pk>/try/", sites.site_try_out, name="site-try-out"),
    path("perforce/", pausing.perforce_server_list, name="perforce-server-list"),
    path(
        "perforce/new/",
        perforce_servers.perforce_server_create,
        name="perforce-server-create",
    ),
    path(
        "perforce/<int:pk>/",
        perforce_servers.perforce_server_detail,
        name="perforce-server-detail",
    ),
    path(
        "perforce/<int:pk>/edit/",
        perforce_servers.perforce_server_edit,
        name="perforce-server-edit",
    ),
    path(
        "perforce/<int:pk>/test/",
        perforce_servers.perforce_server_test,
        name="perforce-server-test",
    ),
    path(
        "perforce/<int:pk>/pause/",
        pausing.perforce_server_pause,
        name="perforce-server-pause",
    ),
    path(
        "perforce/<int:pk>/resume/",
        pausing.perforce_server_resume,
        name="perforce-server-resume",
    ),
]

api_routes = [
    Route("v1/sites", SiteViewSet, "site"),
    Route("v1/perforce-servers", PerforceServerViewSet, "perforce-server"),
]
