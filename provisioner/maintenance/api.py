"""/api/v1/maintenance."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.fields import Text
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet
from provisioner.maintenance.actions import maintenance_announce, maintenance_withdraw
from provisioner.maintenance.models import LONGEST_MESSAGE, Maintenance
from provisioner.maintenance.queries import announced


class MaintenanceSerializer(serializers.ModelSerializer[Maintenance]):
    class Meta:
        model = Maintenance
        fields = ("id", "message", "starts_at", "ends_at")
        read_only_fields = fields


class MaintenanceCreateSerializer(serializers.Serializer[Any]):
    message = Text(
        max_length=LONGEST_MESSAGE,
        help_text="What is done, and what does not work meanwhile.",
    )
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()


class MaintenanceViewSet(ApiViewSet):
    """Current and coming maintenance."""

    queryset = Maintenance.objects.none()
    serializer_class = MaintenanceSerializer

    def get_queryset(self) -> QuerySet[Maintenance]:
        return announced()

    @described("List maintenance", ok=MaintenanceSerializer, refused=[400])
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Announce maintenance",
        "For administrators. Every page says so until it ends.",
        body=MaintenanceCreateSerializer,
        ok=MaintenanceSerializer,
        status=201,
        refused=[403],
    )
    def create(self, request: Request) -> Response:
        permissions.require(permissions.can_administer(self.user))
        asked = self.read_body(MaintenanceCreateSerializer)
        row = maintenance_announce(by=self.user, **asked)
        return self.shown(row, status=201)

    @described(
        "Withdraw maintenance",
        "For administrators. It has ended, or is canceled.",
        ok=None,
        status=204,
        refused=[403, 404],
    )
    def destroy(self, request: Request, pk: int) -> Response:
        permissions.require(permissions.can_administer(self.user))
        maintenance_withdraw(by=self.user, maintenance=self.get_object())
        return Response(status=204)
