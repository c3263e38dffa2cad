"""Serializers of leases, policies, and abandoned workspaces."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from provisioner.api.fields import Flag, IdOrName, Number, Text
from provisioner.leases.actions.leases import LONGEST_REASON, LONGEST_SECONDS
from provisioner.leases.actions.policies import MOST_WARNINGS
from provisioner.leases.models import LeasePolicy
from provisioner.workspaces.api.shapes import LeaseSerializer
from provisioner.workspaces.models import Workspace


class Seconds(Number):
    """A duration."""

    def __init__(self, *, min_value: int = 1, **kwargs: Any) -> None:
        super().__init__(min_value=min_value, max_value=LONGEST_SECONDS, **kwargs)


class LeaseExtendSerializer(serializers.Serializer[Any]):
    """With neither field, the lease is extended by the default length."""

    seconds = Seconds(required=False, help_text="From now.")
    until = serializers.DateTimeField(required=False)


class LeaseKeepSerializer(serializers.Serializer[Any]):
    reason = Text(
        max_length=LONGEST_REASON, help_text="The reason. Others can read it."
    )


# --- policies


class LeasePolicySerializer(serializers.ModelSerializer[LeasePolicy]):
    template = serializers.CharField(
        source="template.name",
        default=None,
        allow_null=True,
        help_text="Null: of all templates without one of their own.",
    )
    template_id = serializers.IntegerField(allow_null=True)
    warn_seconds = serializers.ListField(child=serializers.IntegerField())

    class Meta:
        model = LeasePolicy
        fields = (
            "id",
            "template",
            "template_id",
            "purpose",
            "default_seconds",
            "maximum_seconds",
            "trash_seconds",
            "warn_seconds",
        )
        read_only_fields = fields


class LeasePolicySaveSerializer(serializers.Serializer[Any]):
    template = IdOrName(
        required=False,
        help_text="Its id or its name; of all templates if not given.",
    )
    purpose = serializers.ChoiceField(choices=Workspace.Purpose.choices)
    default_seconds = Seconds(
        allow_null=True, help_text="Null: leases do not end by themselves."
    )
    maximum_seconds = Seconds(
        allow_null=True, help_text="From now, at a time. Null: no limit."
    )
    trash_seconds = Seconds(
        min_value=0,
        help_text="0: purged within minutes, at the second check.",
    )
    warn_seconds = serializers.ListField(
        child=Seconds(),
        max_length=MOST_WARNINGS,
        help_text="When mails are sent before the end.",
    )
    preview = Flag(default=False, help_text="Only return the effect; change nothing.")
    seal = Text(
        default="",
        allow_blank=True,
        max_length=24,
        help_text="The seal of a preview. Refused if other workspaces are affected.",
    )


class LeasePolicyRemoveQuery(serializers.Serializer[Any]):
    preview = serializers.BooleanField(
        default=False, help_text="Only return the effect; change nothing."
    )


class AffectedSerializer(serializers.Serializer[Any]):
    workspace = serializers.IntegerField(source="workspace.pk")
    name = serializers.CharField(source="workspace.name")
    owner = serializers.CharField(source="workspace.owner.username")
    ends_at_before = serializers.DateTimeField(source="before.ends_at", allow_null=True)
    ends_at_after = serializers.DateTimeField(source="after.ends_at", allow_null=True)
    sentence = serializers.CharField()


class PolicyPreviewSerializer(serializers.Serializer[Any]):
    moving = serializers.IntegerField(help_text="How many deadlines change.")
    kept = serializers.IntegerField(
        help_text="Workspaces kept without an end, which do not change."
    )
    affected = AffectedSerializer(many=True)
    seal = serializers.CharField(
        help_text="Send it back to save exactly what this preview shows."
    )


# --- abandoned


class SignalSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True)
    is_old = serializers.BooleanField(
        help_text="It suggests that the workspace is abandoned."
    )
    sentence = serializers.CharField()


class AbandonedSerializer(serializers.Serializer[Any]):
    workspace = serializers.IntegerField(source="workspace.pk")
    name = serializers.CharField(source="workspace.name")
    owner = serializers.CharField(source="workspace.owner.username")
    template = serializers.CharField(source="workspace.template.name")
    site = serializers.CharField(source="workspace.site.name")
    idle_since = serializers.DateTimeField(source="abandonment.idle_since")
    idle_days = serializers.IntegerField(source="abandonment.idle_days")
    sentence = serializers.CharField(source="abandonment.sentence")
    signals = SignalSerializer(source="abandonment.signals", many=True)
    checked_at = serializers.DateTimeField(
        source="workspace.activity_seen_at", help_text="When the signs were collected."
    )
    lease = LeaseSerializer(source="deadline")
    frees_bytes = serializers.IntegerField(
        allow_null=True, help_text="Null: not measured yet."
    )
    snapshot = serializers.CharField(
        source="workspace.snapshot.name", help_text="The snapshot that it pins."
    )
    is_last_clone = serializers.BooleanField(help_text="Nothing else pins it.")
    notified_at = serializers.DateTimeField(allow_null=True)


class RetirementLineSerializer(serializers.Serializer[Any]):
    workspace = serializers.IntegerField(source="workspace.pk")
    name = serializers.CharField(source="workspace.name")
    owner = serializers.CharField(source="workspace.owner.username")
    state = serializers.ChoiceField(
        source="workspace.state", choices=Workspace.State.choices
    )
    sentence = serializers.CharField(help_text="Its progress, or what stopped it.")
    purge_at = serializers.DateTimeField(
        source="workspace.purge_at",
        allow_null=True,
        help_text="When it is purged from the trash.",
    )
    frees_bytes = serializers.IntegerField(
        source="workspace.unique_bytes",
        allow_null=True,
        help_text="Null: not measured yet.",
    )


@extend_schema_serializer(many=False)
class AbandonedListSerializer(serializers.Serializer[Any]):
    after_days = serializers.IntegerField()
    unseen = serializers.IntegerField(
        help_text="Ready workspaces without collected signs of life."
    )
    frees_bytes = serializers.IntegerField()
    workspaces = AbandonedSerializer(many=True)
    under_way = RetirementLineSerializer(
        many=True, help_text="Workspaces retired as abandoned, until each is purged."
    )


class ChosenSerializer(serializers.Serializer[Any]):
    workspaces = serializers.ListField(
        child=Number(min_value=1, max_value=2**63 - 1), min_length=1, max_length=200
    )


class AbandonedRetireSerializer(ChosenSerializer):
    preview = Flag(default=False, help_text="Only say what would happen.")


class OutcomeSerializer(serializers.Serializer[Any]):
    workspace = serializers.IntegerField(source="workspace.pk")
    name = serializers.CharField(source="workspace.name")
    outcome = serializers.ChoiceField(
        source="word",
        choices=[
            ("retire", "It is or would be retired."),
            ("notify", "Its owner is asked."),
            ("refused", "Nothing happens to it."),
        ],
    )
    sentence = serializers.CharField()
    code = serializers.CharField(help_text="Why it was refused, or “”.")
    operation = serializers.SerializerMethodField(help_text="What to follow.")

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_operation(self, outcome: Any) -> int | None:
        return outcome.operation.pk if outcome.operation else None


class OutcomesSerializer(serializers.Serializer[Any]):
    results = OutcomeSerializer(many=True)
