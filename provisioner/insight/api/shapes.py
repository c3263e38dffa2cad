"""Serializers of processes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.insight.models import Process, ProcessEnding


class ProcessSerializer(serializers.ModelSerializer[Process]):
    """A process of a Perforce server, as last read."""

    server = serializers.CharField(source="server.name")
    is_of_the_server = serializers.BooleanField(
        help_text="Replication and the like, which Cloneyard does not end."
    )

    class Meta:
        model = Process
        fields = (
            "id",
            "server",
            "number",
            "state",
            "user",
            "program",
            "client",
            "host",
            "command",
            "arguments",
            "started_at",
            "is_of_the_server",
        )
        read_only_fields = fields


class ProcessListQuery(serializers.Serializer[Any]):
    server = serializers.CharField(
        source="server__name", required=False, help_text="Its name."
    )
    user = serializers.CharField(required=False)
    state = serializers.ChoiceField(choices=Process.State.choices, required=False)
    at_least = serializers.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        required=False,
        help_text="Those whose command began at least so many seconds ago.",
    )


class ProcessEndingSerializer(serializers.ModelSerializer[ProcessEnding]):
    """A request to end a process, and what became of it."""

    server = serializers.CharField(source="server.name")
    requested_by = serializers.CharField(source="requested_by.username")

    class Meta:
        model = ProcessEnding
        fields = (
            "id",
            "server",
            "number",
            "user",
            "command",
            "started_at",
            "requested_by",
            "requested_at",
            "state",
            "message",
        )
        read_only_fields = fields
