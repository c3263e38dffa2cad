"""Addresses of pools."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.pools import views as pool_views
from provisioner.pools.api import PoolViewSet

urlpatterns: list[URLPattern] = [
    path("pools/", pool_views.pool_list, name="pool-list"),
    path("pools/new/", pool_views.pool_create, name="pool-create"),
    path("pools/<int:pk>/", pool_views.pool_detail, name="pool-detail"),
    path("pools/<int:pk>/edit/", pool_views.pool_edit, name="pool-edit"),
    path("pools/<int:pk>/delete/", pool_views.pool_delete, name="pool-delete"),
]

api_routes = [Route("v1/pools", PoolViewSet, "pool")]
