"""Addresses of limits."""

from __future__ import annotations

from django.urls import URLPattern

from provisioner.api.routes import Route
from provisioner.limits.api import LimitViewSet

urlpatterns: list[URLPattern] = []

api_routes = [Route("v1/limits", LimitViewSet, "limit")]
