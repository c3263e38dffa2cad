"""URLs of features' viewsets under /api/."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.urls import URLPattern, URLResolver, path, re_path
from django.views.generic import TemplateView
from rest_framework.routers import SimpleRouter
from rest_framework.viewsets import GenericViewSet

from provisioner.api.schema import SchemaView
from provisioner.api.viewsets import NothingHere


class Route(NamedTuple):
    """A viewset of a feature, and its path below /api/."""

    prefix: str
    viewset: type[GenericViewSet[Any]]
    basename: str


def addresses(routes: Iterable[Route]) -> list[URLPattern | URLResolver]:
    """Return the URLs under /api/: those of features, the schema, its page."""
    router = SimpleRouter(trailing_slash=False, use_regex_path=False)
    for route in routes:
        router.register(*route)
    return [
        *router.urls,
        path("schema/", SchemaView.as_view(), name="schema"),
        path("docs/", TemplateView.as_view(template_name="api/docs.html"), name="docs"),
        re_path("", NothingHere.as_view()),
    ]
