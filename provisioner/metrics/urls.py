"""URLs of metrics."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.urls import URLPattern, path

from provisioner.metrics.views import Metrics

# Without a token it answers 401: a scraper cannot sign in on a page.
urlpatterns: list[URLPattern] = [
    path("metrics", login_not_required(Metrics.as_view()), name="metrics"),
]
