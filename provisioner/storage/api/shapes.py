"""Serializers of splits, of what holds snapshots, of plans, and of ceilings."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from provisioner.api.fields import Number, Text
from provisioner.catalog.models import VOLUME_SETTINGS, VolumePolicy
from provisioner.catalog.models.volume_policies import (
    MOST_AUTOSIZE_PERCENT,
    MOST_GROWTH_PERCENT,
    MOST_HEADROOM_PERCENT,
    MOST_INODES,
    MOST_RESERVE_PERCENT,
)
from provisioner.engine.api.shapes import OperationSerializer
from provisioner.sites.models import Ceiling
from provisioner.sites.models.ceilings import MOST_IOPS, MOST_MBPS
from provisioner.storage.forms import MOST_BYTES
from provisioner.storage.planning import Kind


class SplitRefusalSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    detail = serializers.CharField(source="sentence")


class SplitSerializer(serializers.Serializer[Any]):
    """What a split of a workspace's clone would do now, and the last one."""

    is_independent = serializers.BooleanField(source="workspace.is_independent")
    split_at = serializers.DateTimeField(
        source="workspace.split_at",
        allow_null=True,
        help_text="When it was found to be independent; null: it is a clone.",
    )
    snapshot = serializers.CharField(source="snapshot.name")
    copies_bytes = serializers.IntegerField(
        allow_null=True, help_text="ONTAP's estimate; null: not measured yet."
    )
    measured_at = serializers.DateTimeField(allow_null=True)
    bytes_per_second = serializers.FloatField(
        allow_null=True,
        help_text="What earlier splits at the site reached; null: not known yet.",
    )
    seconds = serializers.FloatField(
        allow_null=True, help_text="How long it would take; null: not known yet."
    )
    room_bytes = serializers.IntegerField(
        allow_null=True, help_text="The room in the aggregate; null: not known."
    )
    is_unpinned = serializers.BooleanField(
        help_text="Whether no workspace would need the snapshot any more."
    )
    is_pruned = serializers.BooleanField(
        help_text="Whether retention would then delete the snapshot."
    )
    frees_bytes = serializers.IntegerField(
        allow_null=True, help_text="What that frees; null: not measured yet."
    )
    kept_for = serializers.ListField(
        child=serializers.CharField(),
        help_text="What keeps the snapshot besides workspaces.",
    )
    refusal = SplitRefusalSerializer(
        allow_null=True, help_text="Why it cannot be requested now; null: it can."
    )
    operation = OperationSerializer(
        allow_null=True, help_text="The last split that was requested."
    )


class HolderSerializer(serializers.Serializer[Any]):
    workspace = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    is_pooled = serializers.BooleanField(help_text="A member of a warm pool.")


class HeldSnapshotSerializer(serializers.Serializer[Any]):
    """A published snapshot, and what holds it."""

    id = serializers.IntegerField(source="snapshot.pk")
    name = serializers.CharField(source="snapshot.name")
    change = serializers.IntegerField(source="snapshot.change")
    template = serializers.CharField(source="snapshot.template.name")
    site = serializers.CharField(source="snapshot.template.site.name")
    size_bytes = serializers.IntegerField(
        allow_null=True, help_text="Its size in ONTAP; null: not measured yet."
    )
    frees_bytes = serializers.IntegerField(
        allow_null=True, help_text="What deleting it frees, at most."
    )
    workspaces = serializers.IntegerField(help_text="How many need it.")
    holders = HolderSerializer(
        source="pins.workspaces", many=True, help_text="The first three by name."
    )
    kept_for = serializers.ListField(
        child=serializers.CharField(), help_text="What keeps it besides workspaces."
    )
    freed_by = serializers.CharField(help_text="A sentence for people.")


class HeldSnapshotQuery(serializers.Serializer[Any]):
    site = serializers.CharField(required=False, help_text="A site's name.")


class SpacePlanQuery(serializers.Serializer[Any]):
    site = serializers.CharField(help_text="Its name.")
    wanted_bytes = serializers.IntegerField(
        min_value=1, max_value=MOST_BYTES, help_text="How much to free."
    )
    includes_work = serializers.BooleanField(
        default=False,
        help_text="Also retire workspaces that may hold unsubmitted work, which is "
        "rescued first.",
    )


class SpacePlanRequestSerializer(SpacePlanQuery):
    seal = serializers.CharField(help_text="Of the plan that was shown.")


class CeilingSaveSerializer(serializers.Serializer[Any]):
    site = serializers.CharField(help_text="Its name.")
    purpose = serializers.ChoiceField(choices=Ceiling.Purpose.choices)
    max_iops = serializers.IntegerField(
        min_value=1, max_value=MOST_IOPS, allow_null=True, help_text="null: no limit."
    )
    max_mbps = serializers.IntegerField(
        min_value=1, max_value=MOST_MBPS, allow_null=True, help_text="null: no limit."
    )
    is_shared = serializers.BooleanField(
        default=False,
        help_text="All volumes have the limits together; otherwise each by itself.",
    )


class CeilingSerializer(serializers.Serializer[Any]):
    """A ceiling, and what is below it. Without limits it is being removed."""

    site = serializers.CharField(source="site.name")
    purpose = serializers.ChoiceField(choices=Ceiling.Purpose.choices)
    max_iops = serializers.IntegerField(allow_null=True)
    max_mbps = serializers.IntegerField(allow_null=True)
    is_shared = serializers.BooleanField()
    policy = serializers.CharField(
        source="kept_as", help_text="ONTAP's QoS policy; empty: not created yet."
    )
    volumes = serializers.IntegerField(help_text="How many are below it.")
    at_ceiling = serializers.IntegerField(help_text="How many of them reached it.")
    applied_at = serializers.DateTimeField(source="kept_at", allow_null=True)
    status_message = serializers.CharField(
        help_text="Why it could not be applied last time; empty: it was."
    )


class VolumePolicySaveSerializer(serializers.Serializer[Any]):
    site = Text(help_text="Its name.")
    template = Text(
        allow_null=True,
        default=None,
        help_text="Its name, or id. null: the defaults of the site.",
    )
    autosize_mode = serializers.ChoiceField(
        choices=VolumePolicy.Autosize.choices, allow_blank=True, default=""
    )
    autosize_max_percent = Number(
        min_value=101,
        max_value=MOST_AUTOSIZE_PERCENT,
        allow_null=True,
        default=None,
        help_text="How far it grows, in percent of the template's size.",
    )
    snapshot_reserve_percent = Number(
        min_value=0, max_value=MOST_RESERVE_PERCENT, allow_null=True, default=None
    )
    guarantee = serializers.ChoiceField(
        choices=VolumePolicy.Guarantee.choices, allow_blank=True, default=""
    )
    fractional_reserve = serializers.ChoiceField(
        choices=VolumePolicy.FractionalReserve.choices, allow_null=True, default=None
    )
    security_style = serializers.ChoiceField(
        choices=VolumePolicy.SecurityStyle.choices, allow_blank=True, default=""
    )
    min_inodes = Number(
        min_value=1, max_value=MOST_INODES, allow_null=True, default=None
    )
    headroom_percent = Number(
        min_value=0,
        max_value=MOST_HEADROOM_PERCENT,
        allow_null=True,
        default=None,
        help_text="How much larger new clones for development are than their template.",
    )
    build_headroom_percent = Number(
        min_value=0,
        max_value=MOST_HEADROOM_PERCENT,
        allow_null=True,
        default=None,
        help_text="The same for builds and CI.",
    )
    clone_grow_percent = Number(
        min_value=0,
        max_value=MOST_GROWTH_PERCENT,
        allow_null=True,
        default=None,
        help_text="How much clones for development grow when 95 % full. null, 0: not.",
    )
    clone_grow_max_percent = Number(
        min_value=101,
        max_value=MOST_AUTOSIZE_PERCENT,
        allow_null=True,
        default=None,
        help_text="How far they grow, in percent of their template. null: 200.",
    )


class VolumePolicySerializer(serializers.ModelSerializer[VolumePolicy]):
    """Settings of volumes. Empty ones are the site's, or as they are in ONTAP."""

    site = serializers.CharField(source="site.name")
    template = serializers.CharField(
        source="template.name",
        allow_null=True,
        default=None,
        help_text="null: the defaults of the site.",
    )
    autosize_mode = serializers.ChoiceField(
        choices=VolumePolicy.Autosize.choices, allow_blank=True, read_only=True
    )
    guarantee = serializers.ChoiceField(
        choices=VolumePolicy.Guarantee.choices, allow_blank=True, read_only=True
    )
    security_style = serializers.ChoiceField(
        choices=VolumePolicy.SecurityStyle.choices, allow_blank=True, read_only=True
    )

    class Meta:
        model = VolumePolicy
        fields = ("site", "template", *VOLUME_SETTINGS, "applied_at", "status_message")
        read_only_fields = fields


class PlannedActSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(
        source="act.kind.value",
        choices=[(kind.value, kind.value.capitalize()) for kind in Kind],
    )
    workspace = serializers.IntegerField(
        source="workspace_id", allow_null=True, help_text="null for `prune`."
    )
    snapshot = serializers.IntegerField(
        source="snapshot_id", allow_null=True, help_text="Only of `prune`."
    )
    name = serializers.CharField(source="row.name")
    frees_bytes = serializers.IntegerField(
        source="act.frees_bytes", help_text="Negative: it takes space."
    )
    why = serializers.CharField()


class SpacePlanSerializer(serializers.Serializer[Any]):
    """The lightest plan that frees so much at a site. Nothing is done."""

    site = serializers.CharField(source="site.name")
    wanted_bytes = serializers.IntegerField(source="plan.wanted_bytes")
    frees_bytes = serializers.IntegerField(source="plan.frees_bytes")
    is_enough = serializers.BooleanField(source="plan.is_enough")
    unmeasured = serializers.IntegerField(
        help_text="Workspaces that were not measured yet count as nothing."
    )
    seal = serializers.CharField(help_text="Sent back to request its acts.")
    acts = PlannedActSerializer(many=True)


class PlanOutcomeSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(source="act.act.kind.value")
    name = serializers.CharField(source="act.row.name")
    sentence = serializers.CharField()
    code = serializers.CharField(help_text="Why it was refused; empty: it was not.")


@extend_schema_serializer(many=False)
class PlanOutcomesSerializer(serializers.Serializer[Any]):
    results = PlanOutcomeSerializer(many=True)
