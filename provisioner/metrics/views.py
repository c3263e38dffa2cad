"""The address that Prometheus scrapes."""

from __future__ import annotations

from typing import cast

from django.http import HttpResponse
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from rest_framework.request import Request
from rest_framework.views import APIView

from provisioner.accounts.models import User
from provisioner.api.http import AlwaysJson
from provisioner.metrics.queries import Figures


class Metrics(APIView):
    """GET: all figures for an administrator's token; OpenMetrics where it is accepted.

    A figure has labels only for sites, Perforce servers, queues and kinds, so that
    the number of series does not grow with people, templates or workspaces.

    Source: https://prometheus.io/docs/instrumenting/exposition_formats/
    """

    content_negotiation_class = AlwaysJson  # of refusals; figures have their own
    schema = None
    http_method_names = ("get", "head")

    def get(self, request: Request) -> HttpResponse:
        registry = CollectorRegistry()
        registry.register(Figures(by=cast(User, request.user)))
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return HttpResponse(encode(registry), content_type=content_type)
