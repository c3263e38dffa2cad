"""URLs of sites."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from provisioner.api.routes import Route
from provisioner.sites.api.perforce_servers import PerforceServerViewSet
from provisioner.sites.api.sites import SiteViewSet
from provisioner.sites.lists import PERFORCE_SERVERS, SITES
from provisioner.sites.views import pausing, sites
from provisioner.sites.views import perforce_servers as servers
from provisioner.web.http import administrators_only
from provisioner.web.lists.answers import list_page
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

_of_a_server = [
    path("", servers.perforce_server_detail, name="perforce-server-detail"),
    path("edit/", servers.perforce_server_edit, name="perforce-server-edit"),
    path("test/", servers.perforce_server_test, name="perforce-server-test"),
    path("pause/", pausing.perforce_server_pause, name="perforce-server-pause"),
    path("resume/", pausing.perforce_server_resume, name="perforce-server-resume"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path(
        "sites/",
        administrators_only(list_page(SITES, "sites/list.html")),
        name="site-list",
    ),
    path("sites/new/", sites.site_create, name="site-create"),
    path("sites/<int:pk>/", sites.site_detail, name="site-detail"),
    path("sites/<int:pk>/edit/", sites.site_edit, name="site-edit"),
    path("sites/<int:pk>/test/", sites.site_test, name="site-test"),
    path("sites/<int:pk>/try/", sites.site_try_out, name="site-try-out"),
    path(
        "perforce/",
        administrators_only(
            list_page(PERFORCE_SERVERS, "sites/perforce_servers/list.html")
        ),
        name="perforce-server-list",
    ),
    path(
        "perforce/new/", servers.perforce_server_create, name="perforce-server-create"
    ),
    path("perforce/<int:pk>/", include(_of_a_server)),
]

api_routes = [
    Route("v1/sites", SiteViewSet, "site"),
    Route("v1/perforce-servers", PerforceServerViewSet, "perforce-server"),
]
