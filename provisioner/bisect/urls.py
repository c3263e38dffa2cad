"""URLs of bisections."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.bisect import views
from provisioner.bisect.api.views import BisectionViewSet
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

urlpatterns: list[URLPattern] = [
    path(
        "templates/<int:template_pk>/bisect/",
        views.bisection_create,
        name="bisection-create",
    ),
    path("bisections/", views.bisection_list, name="bisection-list"),
    path("bisections/<int:pk>/", views.bisection_detail, name="bisection-detail"),
    path(
        "bisections/<int:pk>/verdict/",
        views.bisection_verdict,
        name="bisection-verdict",
    ),
    path("bisections/<int:pk>/stop/", views.bisection_stop, name="bisection-stop"),
]

api_routes = [Route("v1/bisections", BisectionViewSet, "bisection")]
