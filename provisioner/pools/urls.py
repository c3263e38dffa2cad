"""URLs of pools."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.pools import views
from provisioner.pools.api.views import PoolViewSet
from provisioner.pools.lists import POOLS
from provisioner.web.http import administrators_only
from provisioner.web.lists.answers import list_page
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Warm pools",
        section=Section.POLICIES,
        url_name="pool-list",
        covers=("pool-",),
        rank=20,
        is_for=administrators,
    )
)

urlpatterns: list[URLPattern] = [
    path(
        "pools/",
        administrators_only(list_page(POOLS, "pools/list.html")),
        name="pool-list",
    ),
    path("pools/new/", views.pool_create, name="pool-create"),
    path("pools/<int:pk>/", views.pool_detail, name="pool-detail"),
    path("pools/<int:pk>/edit/", views.pool_edit, name="pool-edit"),
    path("pools/<int:pk>/delete/", views.pool_delete, name="pool-delete"),
]

api_routes = [Route("v1/pools", PoolViewSet, "pool")]
