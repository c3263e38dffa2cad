"""Limits of sites and quotas of people, for administrators."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.schema import described
from provisioner.api.shapes import LimitSerializer
from provisioner.api.viewsets import ShortListViewSet
from provisioner.limits.queries import limits_overview
from provisioner.sites.models import Site


class SiteLimitsSerializer(serializers.Serializer[Any]):
    site = serializers.CharField(source="site.name", help_text="The site's name.")
    ontap_version = serializers.CharField(source="capacity.ontap_version")
    measured_at = serializers.DateTimeField(
        source="capacity.measured_at",
        allow_null=True,
        help_text="null: never measured.",
    )
    is_stale = serializers.BooleanField(
        help_text="The measurement is too old to refuse anybody for lack of space."
    )
    status_message = serializers.CharField(
        source="capacity.status_message",
        help_text="Why the last measurement failed, or what it could not read.",
    )
    limits = LimitSerializer(many=True)


@extend_schema_serializer(many=False)
class LimitsSerializer(serializers.Serializer[Any]):
    sites = SiteLimitsSerializer(many=True)
    quotas = LimitSerializer(many=True)


class LimitViewSet(ShortListViewSet):
    """For administrators: what is checked before anything is made."""

    queryset = Site.objects.none()
    serializer_class = LimitsSerializer

    @described(
        "List all limits",
        "Of each site with its templates, and the quotas of teams and people.",
        ok=LimitsSerializer,
        refused=[403],
        operation_id="limits_retrieve",
    )
    def list(self, request: Request) -> Response:
        return Response(LimitsSerializer(limits_overview(self.user)).data)
