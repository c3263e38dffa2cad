"""Serializers of copies."""

from __future__ import annotations

import datetime as dt
from typing import Any

from rest_framework import serializers

from provisioner.api.fields import Number, read_once
from provisioner.copies.models import (
    LEAST_MINUTES,
    MOST_MINUTES,
    CopyRule,
    WorkspaceCopy,
    usual_purposes,
)
from provisioner.copies.overviews import CopyOverview, overviews_of
from provisioner.workspaces.models import Workspace


class CopyRuleSerializer(serializers.ModelSerializer[CopyRule]):
    template = serializers.CharField(source="template.name")
    site = serializers.CharField(
        source="site.name", help_text="Workspaces of other sites are copied to it."
    )
    second_site = serializers.CharField(
        source="second_site.name", help_text="Workspaces at `site` are copied to it."
    )
    purposes = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = CopyRule
        fields = (
            *("id", "template", "site", "second_site", "every_minutes", "purposes"),
        )
        read_only_fields = fields


class CopyRuleSetSerializer(serializers.Serializer[Any]):
    mirror = Number(
        min_value=1,
        max_value=2**63 - 1,
        help_text="Its id. Its site and the template's home get copies of each other.",
    )
    every_minutes = Number(
        min_value=LEAST_MINUTES,
        max_value=MOST_MINUTES,
        default=60,
        help_text="How often what changed is transferred.",
    )
    purposes = serializers.ListField(
        child=serializers.ChoiceField(choices=Workspace.Purpose.choices),
        default=usual_purposes,
        min_length=1,
        max_length=len(Workspace.Purpose),
        help_text="Those of the workspaces that are copied.",
    )


class WorkspaceCopySerializer(serializers.ModelSerializer[WorkspaceCopy]):
    workspace = serializers.IntegerField(source="workspace_id")
    name = serializers.CharField(source="workspace.name", help_text="The workspace's.")
    site = serializers.CharField(source="site.name")
    obstacle = serializers.SerializerMethodField(
        help_text="What keeps it from the next transfer; empty: nothing known."
    )
    volume_path = serializers.CharField(help_text="“svm:volume” at the site.")
    last_arrived_at = serializers.SerializerMethodField(
        help_text="When the last transfer ended; null: none yet."
    )
    last_bytes = serializers.SerializerMethodField(help_text="What it transferred.")

    class Meta:
        model = WorkspaceCopy
        fields = (
            "id",
            "workspace",
            "name",
            "site",
            "state",
            "obstacle",
            "volume_path",
            "due_at",
            "last_arrived_at",
            "last_bytes",
        )
        read_only_fields = fields

    def get_obstacle(self, copy: WorkspaceCopy) -> str:
        return self._overview(copy).obstacle

    def get_last_arrived_at(self, copy: WorkspaceCopy) -> dt.datetime | None:
        last = self._overview(copy).last
        return last.arrived_at if last else None

    def get_last_bytes(self, copy: WorkspaceCopy) -> int:
        last = self._overview(copy).last
        return last.bytes if last else 0

    def _overview(self, copy: WorkspaceCopy) -> CopyOverview:
        overview: CopyOverview = read_once(self, "overviews", _by_copy)[copy.pk]
        return overview


def _by_copy(copies: list[WorkspaceCopy]) -> dict[int, CopyOverview]:
    return {each.copy.pk: each for each in overviews_of(copies)}
