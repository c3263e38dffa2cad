"""The body of a request for a workspace."""

from __future__ import annotations

from rest_framework import serializers

from provisioner.api.fields import Flag, IdOrName, Name, Number, Text, WorkedOutOnce
from provisioner.catalog.models import Template
from provisioner.leases.actions import heartbeats
from provisioner.leases.api.shapes import Seconds
from provisioner.lib.names import LONGEST_NAME
from provisioner.workspaces.models import Workspace


class WorkspaceCreateSerializer(WorkedOutOnce):
    template = IdOrName(help_text="Its id or its name.")
    site = Text(
        max_length=LONGEST_NAME,
        required=False,
        help_text="Where it is cloned: the template's site, or that of a mirror. If "
        "not given: your home site where the template has a mirror there. nearest: "
        "that, else the site of the network that the request comes from; "
        "site_because says which and why.",
    )
    name = Name(required=False, help_text="Made up if not given.")
    purpose = serializers.ChoiceField(
        choices=Workspace.Purpose.choices, default=Workspace.Purpose.DEVELOPMENT
    )
    snapshot = IdOrName(
        required=False, help_text="Its id or its name; the newest if not given."
    )
    quality = serializers.ChoiceField(
        choices=Template.WantedQuality.choices,
        required=False,
        help_text="The newest snapshot with at least this quality; instead of one.",
    )
    reconcile = Flag(
        default=False, help_text="Compare all files with the depot before it is ready."
    )
    lease = Seconds(
        required=False,
        help_text="Seconds until it is retired; by default as the policy says.",
    )
    heartbeat_seconds = Number(
        required=False,
        min_value=heartbeats.SHORTEST_SECONDS,
        max_value=heartbeats.LONGEST_SECONDS,
        help_text="Its lease ends early if it gets no heartbeat for so long, counted "
        "from when it is ready, or has failed.",
    )
