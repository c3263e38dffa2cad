"""What the API says of plans of sandboxes, and what it is told."""

from __future__ import annotations

from typing import Any, TypeVar

from rest_framework import serializers

from provisioner.api.fields import IdOrName, Text
from provisioner.api.viewsets import chosen
from provisioner.lib import schedules
from provisioner.lib.refusals import InvalidRequest
from provisioner.sandboxes.models import P4dVersion, SandboxHost, SandboxPlan

AnyPlan = TypeVar("AnyPlan", bound=SandboxPlan)

PLAN_FIELDS = (
    "server",
    "server_id",
    "host",
    "version",
    "cron",
    "is_on",
    "has_failed",
    "status",
)


class PlanSerializer(serializers.ModelSerializer[AnyPlan]):
    """A plan; each kind names its model."""

    server = serializers.CharField(source="server.name")
    server_id = serializers.IntegerField()
    host = serializers.CharField(source="host.name", default=None, allow_null=True)
    version = serializers.CharField(
        source="version.release", default=None, allow_null=True
    )
    cron = serializers.CharField(help_text="When, in UTC.")
    status = serializers.CharField(help_text="What came of the last one.")


class PlanSaveSerializer(serializers.Serializer[Any]):
    """Fields that are left out do not change."""

    host = IdOrName(required=False, help_text="A host of sandboxes.")
    version = Text(
        required=False, max_length=8, help_text="The server's own release of p4d."
    )
    cron = Text(
        required=False,
        max_length=schedules.LONGEST,
        help_text="When they are made: five fields in UTC, such as 30 2 * * *.",
    )
    is_on = serializers.BooleanField(required=False)


def with_rows(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what was asked with the rows that it names. Raises: InvalidRequest."""
    found = dict(asked)
    if "host" in found:
        hosts = SandboxHost.objects.all()
        found["host"] = chosen(hosts, word="host", id_or_name=found["host"])
    if "version" in found:
        release = found["version"]
        found["version"] = P4dVersion.objects.filter(release=release).first()
        if found["version"] is None:
            raise InvalidRequest.at("version", f"p4d {release} is not offered.")
    return found
