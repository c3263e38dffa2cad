"""/api/v1/errands."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet
from provisioner.sites.models import Site
from tests.example_feature.actions import errand_run
from tests.example_feature.models import Errand
from tests.example_feature.queries import errands_visible_to


class ErrandSerializer(serializers.ModelSerializer[Errand]):
    class Meta:
        model = Errand
        fields = ("id", "name", "state", "status_message")
        read_only_fields = fields


class ErrandCreateSerializer(serializers.Serializer[Any]):
    site = serializers.SlugRelatedField("name", queryset=Site.objects.all())
    name = serializers.CharField(max_length=40)


class ErrandViewSet(ApiViewSet):
    """Errands: yours, or everybody's for administrators."""

    queryset = Errand.objects.none()
    serializer_class = ErrandSerializer

    def get_queryset(self) -> QuerySet[Errand]:
        return errands_visible_to(self.user)

    @described("List errands", ok=ErrandSerializer, refused=[400])
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Run an errand", body=ErrandCreateSerializer, ok=ErrandSerializer, status=202
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(ErrandCreateSerializer)
        errand = errand_run(by=self.user, **asked)
        return Response(self.get_serializer(errand).data, status=202)
