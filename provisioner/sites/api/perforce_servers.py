"""The API of Perforce servers: slots, and pausing."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.fields import Text
from provisioner.api.schema import described
from provisioner.api.viewsets import ShortListViewSet
from provisioner.engine.models import Step
from provisioner.sites.actions.pausing import (
    LONGEST_REASON,
    perforce_server_pause,
    perforce_server_resume,
)
from provisioner.sites.models import PerforceServer, ServerKind
from provisioner.sites.slots_overview import slots_for, slots_of


class SlotSerializer(serializers.Serializer[Any]):
    """A step that has a slot, or waits for it."""

    operation = serializers.IntegerField(source="step.operation_id")
    workspace = serializers.IntegerField(
        source="subject_ids.workspace", allow_null=True
    )
    template = serializers.IntegerField(source="subject_ids.template", allow_null=True)
    step = serializers.CharField(source="step.name")
    state = serializers.ChoiceField(
        source="step.state",
        choices=[(state.value, state.label) for state in Step.State],
        help_text="queued: it has a slot and waits for a worker, or waits for both.",
    )
    asked_by = serializers.CharField()
    is_of_machine = serializers.BooleanField(help_text="People come first.")
    since = serializers.DateTimeField(
        source="step.queued_at", help_text="When it was queued."
    )


class LockWaitSerializer(serializers.Serializer[Any]):
    """A command of ours that waited for a lock, as the server reported."""

    at = serializers.DateTimeField()
    operation = serializers.IntegerField(source="operation_id")
    command = serializers.CharField()
    table = serializers.CharField()
    waited_ms = serializers.IntegerField()
    held_ms = serializers.IntegerField()


class ReplicaPositionSerializer(serializers.Serializer[Any]):
    """How far a replica or edge is, as last measured."""

    change = serializers.IntegerField(help_text="Its newest submitted change.")
    upstream_change = serializers.IntegerField(
        allow_null=True, help_text="That of its upstream; null: it did not answer."
    )
    behind = serializers.IntegerField(
        allow_null=True, help_text="How many change numbers it is behind."
    )
    sentence = serializers.CharField()
    measured_at = serializers.DateTimeField()


class PerforceServerSerializer(serializers.Serializer[Any]):
    """A Perforce server: what runs on it, who waits, and how many may run."""

    id = serializers.IntegerField(source="server.pk")
    name = serializers.CharField(source="server.name")
    kind = serializers.ChoiceField(source="server.kind", choices=ServerKind.choices)
    upstream = serializers.CharField(
        source="server.upstream.name",
        default=None,
        allow_null=True,
        help_text="The server that it replicates from, or stands in front of.",
    )
    server_id = serializers.CharField(
        source="server.server_id", help_text="ServerID, or “”."
    )
    position = ReplicaPositionSerializer(
        source="server.position",
        default=None,
        allow_null=True,
        help_text="null: not measured yet, or no replica.",
    )
    p4port = serializers.CharField(source="server.p4port")
    people_p4port = serializers.CharField(
        source="server.p4port_for_people", help_text="P4PORT of people's .p4config."
    )
    limit = serializers.IntegerField(
        help_text="How many flushes, syncs and comparisons may run at a time."
    )
    present_limit = serializers.IntegerField(
        help_text="Fewer after a command waited long for a lock, or while others wait. "
        "0 in maintenance."
    )
    limit_reason = serializers.CharField(help_text="Why this many may run.")
    lock_waits = LockWaitSerializer(many=True, help_text="The last ten.")
    is_paused = serializers.BooleanField()
    paused_at = serializers.DateTimeField(
        source="pause.paused_at", default=None, allow_null=True
    )
    paused_by = serializers.CharField(
        source="pause.paused_by.username", default=None, allow_null=True
    )
    paused_reason = serializers.CharField(
        source="pause.paused_reason", default="", help_text="“”: it is not paused."
    )
    running = SlotSerializer(many=True)
    waiting = SlotSerializer(many=True, help_text="The first twenty in the queue.")
    people_waiting = serializers.IntegerField()
    machines_waiting = serializers.IntegerField()


class PauseSerializer(serializers.Serializer[Any]):
    reason = Text(
        max_length=LONGEST_REASON, help_text="People with waiting work read it."
    )


class ResumeSerializer(serializers.Serializer[Any]):
    reason = Text(default="", allow_blank=True, max_length=LONGEST_REASON)


class PerforceServerViewSet(ShortListViewSet):
    """For administrators: the slots of each Perforce server, and pausing it."""

    queryset = PerforceServer.objects.select_related(
        *("slot_budget__paused_by", "load", "upstream", "position")
    )
    serializer_class = PerforceServerSerializer

    @described(
        "List Perforce servers",
        "What runs on each, what waits for a slot, and whether it is paused.",
        ok=PerforceServerSerializer,
        refused=[403],
        operation_id="perforce_servers_list",
    )
    def list(self, request: Request) -> Response:
        return self.page_of(slots_for(self.user))

    @described(
        "Pause a Perforce server",
        "No step that uses it starts, and none of its templates is refreshed, until "
        "it is resumed. Running steps continue. A paused server gets the new reason.",
        ok=PerforceServerSerializer,
        refused=[400, 403, 404],
        body=PauseSerializer,
    )
    @action(detail=True, methods=["post"])
    def pause(self, request: Request, pk: int) -> Response:
        permissions.require(permissions.can_administer(self.user))
        asked = self.read_body(PauseSerializer)
        server = self.get_object()
        perforce_server_pause(by=self.user, server=server, **asked)
        return self._shown(pk)

    @described(
        "Resume a Perforce server",
        "Waiting steps start, people's first. A server that is not paused does "
        "not change.",
        ok=PerforceServerSerializer,
        refused=[400, 403, 404],
        body=ResumeSerializer,
    )
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: int) -> Response:
        permissions.require(permissions.can_administer(self.user))
        asked = self.read_body(ResumeSerializer)
        server = self.get_object()
        perforce_server_resume(by=self.user, server=server, **asked)
        return self._shown(pk)

    def _shown(self, pk: int) -> Response:
        slots = slots_of(self.get_queryset().get(pk=pk))
        return Response(PerforceServerSerializer(slots).data)
