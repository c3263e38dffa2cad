"""/api/v1/workers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ShortListViewSet
from provisioner.engine.api import examples
from provisioner.engine.models import WorkerQueues
from provisioner.engine.workers import alive_workers


class WorkerSerializer(serializers.Serializer[Any]):
    host = serializers.CharField()
    process_id = serializers.IntegerField()
    release = serializers.CharField(help_text="Its own; “” if it did not say.")
    queues = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="What it serves. null: all that fit.",
    )
    clock_trouble = serializers.CharField(
        help_text="What is wrong with its clock: then it serves nothing. Else “”."
    )
    started_at = serializers.DateTimeField()
    heard_at = serializers.DateTimeField(help_text="Its last heartbeat.")


class WorkerViewSet(ShortListViewSet):
    """Workers that run now, for administrators."""

    queryset = WorkerQueues.objects.none()
    serializer_class = WorkerSerializer

    @described(
        "List the workers",
        "For administrators: those that sent a heartbeat lately, by host, each with "
        "its release.",
        ok=WorkerSerializer(many=True),
        refused=[403],
        operation_id="workers_list",
        examples=examples.WORKERS,
    )
    def list(self, request: Request) -> Response:
        permissions.require(permissions.can_administer(self.user))
        return self.page_of(alive_workers())
