"""Addresses of workspace requests."""

from __future__ import annotations

from django.urls import URLPattern

from provisioner.api.routes import Route
from provisioner.workspace_requests.api import WorkspaceViewSet

urlpatterns: list[URLPattern] = []

api_routes = [Route("v1/workspaces", WorkspaceViewSet, "workspace")]
