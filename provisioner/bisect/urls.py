"""URLs of bisections."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from provisioner.api.routes import Route
from provisioner.bisect import views
from provisioner.bisect.api.views import BisectionViewSet
from provisioner.bisect.lists import BISECTIONS
from provisioner.web.lists.answers import list_page
from provisioner.web.navigation import Place, Section, register

register(
    Place(
        title="Bisections",
        section=Section.TEMPLATES,
        url_name="bisection-list",
        covers=("bisection-",),
        rank=30,
    )
)

_of_a_bisection = [
    path("", views.bisection_detail, name="bisection-detail"),
    path("verdict/", views.bisection_verdict, name="bisection-verdict"),
    path("stop/", views.bisection_stop, name="bisection-stop"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path(
        "templates/<int:template_pk>/bisect/",
        views.bisection_create,
        name="bisection-create",
    ),
    path(
        "bisections/", list_page(BISECTIONS, "bisect/list.html"), name="bisection-list"
    ),
    path("bisections/<int:pk>/", include(_of_a_bisection)),
]

api_routes = [Route("v1/bisections", BisectionViewSet, "bisection")]
