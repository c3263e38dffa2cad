"""Addresses of errands."""

from __future__ import annotations

from django.urls import path

from provisioner.api.routes import Route
from tests.example_feature import views
from tests.example_feature.api import ErrandViewSet

urlpatterns = [path("errands/<int:pk>/", views.errand_detail, name="errand-detail")]

api_routes = [Route("v1/errands", ErrandViewSet, "errand")]
