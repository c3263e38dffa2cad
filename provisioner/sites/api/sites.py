"""The API of sites: their health, as last tested."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.schema import described
from provisioner.api.viewsets import ShortListViewSet
from provisioner.sites.models import ConnectionCheck, ConnectionTest, Site
from provisioner.sites.queries import Health, sites_for


class ConnectionCheckSerializer(serializers.Serializer[Any]):
    """One check of a connection."""

    name = serializers.CharField(help_text="A stable code.")
    found = serializers.ChoiceField(
        source="outcome", choices=ConnectionCheck.Outcome.choices
    )
    sentence = serializers.CharField(help_text="The result as a sentence.")
    advice = serializers.CharField(help_text="Advice, or “”.")


class ConnectionReportSerializer(serializers.Serializer[Any]):
    """The results of a test from one place."""

    place = serializers.ChoiceField(choices=ConnectionTest.Place.choices)
    host = serializers.CharField(help_text="“”: not tested yet.")
    checked_at = serializers.DateTimeField(allow_null=True)
    why_not = serializers.CharField(help_text="Why no worker tests from there, or “”.")
    checks = ConnectionCheckSerializer(many=True, source="lines")


class SiteSerializer(serializers.Serializer[Any]):
    """A site and its health."""

    id = serializers.IntegerField(source="site.pk")
    name = serializers.CharField(source="site.name")
    title = serializers.CharField(source="site.title")
    perforce_server = serializers.CharField(source="site.perforce_server.name")
    mount_root = serializers.CharField(source="site.mount_root")
    mounting = serializers.ChoiceField(
        source="site.mounting",
        choices=Site.Mounting.choices,
        help_text="How volumes get below the mount root on hosts of workers.",
    )
    nfs_server = serializers.CharField(
        source="site.nfs_server", help_text="“”: none is set."
    )
    health = serializers.ChoiceField(
        source="connection.health",
        choices=[Health.UNKNOWN, Health.LOOKING, Health.WELL, Health.FAILED],
        help_text="unknown: it was not tested since it was saved.",
    )
    first_failure = serializers.CharField(source="connection.first_failure")
    tested_at = serializers.DateTimeField(source="connection.asked_at", allow_null=True)
    hosts = serializers.ListField(
        child=serializers.CharField(),
        help_text="Hosts whose workers sent a heartbeat lately.",
    )
    reports = ConnectionReportSerializer(many=True, source="connection.reports")


class SiteViewSet(ShortListViewSet):
    """For administrators: sites and their latest tests."""

    queryset = Site.objects.none()
    serializer_class = SiteSerializer

    @described(
        "List sites",
        "The state of each, as last tested at /sites/. Makes no call to ONTAP.",
        ok=SiteSerializer,
        refused=[403],
        operation_id="sites_list",
    )
    def list(self, request: Request) -> Response:
        return self.page_of(sites_for(self.user))
