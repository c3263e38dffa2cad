"""Serializers of mirrors."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from provisioner.api.fields import IdOrName, Number, Text, read_once
from provisioner.lib import schedules
from provisioner.mirrors.forms import LARGEST_THROTTLE
from provisioner.mirrors.models import ENDED, MOST_KEPT, Mirror, MirroredSnapshot
from provisioner.mirrors.overviews import MirrorOverview, overviews_of
from provisioner.mirrors.previews import PromotionPreview, WayBackPreview


class NewestMirroredSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    change = serializers.IntegerField()
    quality = serializers.CharField()


class ComingSnapshotSerializer(serializers.Serializer[Any]):
    """What is being transferred, and what is left of it, as far as it can be known."""

    id = serializers.IntegerField(source="mirrored.snapshot_id")
    change = serializers.IntegerField(source="mirrored.snapshot.change")
    bytes_left = serializers.IntegerField(
        source="estimate.bytes_left", default=None, allow_null=True
    )
    seconds_left = serializers.FloatField(
        source="estimate.seconds", default=None, allow_null=True
    )


class MirrorFiguresSerializer(serializers.Serializer[Any]):
    """What is at the site, and how far it is behind the template's default."""

    newest = NewestMirroredSerializer(
        allow_null=True, help_text="The newest snapshot there; null: none yet."
    )
    snapshots = serializers.IntegerField(help_text="How many snapshots are there.")
    has_default = serializers.BooleanField(
        help_text="Whether the template's default snapshot is there."
    )
    snapshots_behind = serializers.IntegerField(
        allow_null=True,
        help_text="Snapshots after the newest there, up to the default; null: unknown.",
    )
    changes_behind = serializers.IntegerField(
        allow_null=True, help_text="The changes in between; null: unknown."
    )
    remark = serializers.CharField(
        help_text="What is wrong with the ONTAP releases of both sites, with the "
        "remedy; “”: nothing."
    )
    coming = ComingSnapshotSerializer(
        allow_null=True, help_text="Being transferred; null: nothing."
    )


class MirrorSerializer(serializers.ModelSerializer[Mirror]):
    template = serializers.CharField(source="template.name")
    template_id = serializers.IntegerField()
    site = serializers.CharField(source="site.name")
    volume_path = serializers.CharField(help_text="“svm:volume” at the site.")
    policy = serializers.CharField(source="policy_name", help_text="Of SnapMirror.")
    file_bytes = serializers.IntegerField(
        read_only=True,
        allow_null=True,
        help_text="What files can take of its volume: its size without the reserve.",
    )
    trouble = serializers.CharField(
        help_text="What is wrong in ONTAP, with the remedy; empty: nothing."
    )
    figures = serializers.SerializerMethodField()

    class Meta:
        model = Mirror
        fields = (
            "id",
            "name",
            "template",
            "template_id",
            "site",
            "state",
            "status_code",
            "status_message",
            "failed_at",
            "trouble",
            "checked_at",
            "start",
            "cron",
            "next_transfer_at",
            "throttle_kilobytes",
            "keep",
            "volume_path",
            "chosen_aggregate",
            "aggregate",
            "actual_size_bytes",
            "grows_to_bytes",
            "file_bytes",
            "used_bytes",
            "snapshot_bytes",
            "used_inodes",
            "max_inodes",
            "relationship_uuid",
            "policy",
            "is_former_home",
            "created_at",
            "figures",
        )
        read_only_fields = fields

    @extend_schema_field(MirrorFiguresSerializer)
    def get_figures(self, mirror: Mirror) -> Any:
        by_mirror = read_once(self, "figures", _overviews_by_mirror)
        return MirrorFiguresSerializer(by_mirror[mirror.pk]).data


def _overviews_by_mirror(mirrors: list[Mirror]) -> dict[int, MirrorOverview]:
    return {each.mirror.pk: each for each in overviews_of(mirrors)}


class MirroredSnapshotSerializer(serializers.ModelSerializer[MirroredSnapshot]):
    snapshot = serializers.IntegerField(source="snapshot_id")
    name = serializers.CharField(source="snapshot.name")
    change = serializers.IntegerField(source="snapshot.change")
    quality = serializers.CharField(source="snapshot.quality")
    bytes = serializers.IntegerField(help_text="Of its last transfer.")
    seconds = serializers.FloatField(help_text="Of its last transfer.")
    compared_files = serializers.IntegerField(
        help_text="Files that equal what was published; 0: only ONTAP's "
        "version was compared."
    )

    class Meta:
        model = MirroredSnapshot
        fields = (
            "snapshot",
            "name",
            "change",
            "quality",
            "state",
            "bytes",
            "seconds",
            "compared_files",
            "arrived_at",
        )
        read_only_fields = fields


class PromotionSerializer(serializers.Serializer[PromotionPreview]):
    """What becomes of a template when a mirror is promoted."""

    obstacle = serializers.CharField(
        help_text="Why it is not possible, as a sentence; empty: it is."
    )
    newest = NewestMirroredSerializer(
        source="newest.snapshot",
        allow_null=True,
        default=None,
        help_text="What new workspaces get then; null: nothing is there.",
    )
    snapshots_behind = serializers.IntegerField(
        source="overview.snapshots_behind",
        allow_null=True,
        help_text="Snapshots after the newest there, up to the default; null: unknown.",
    )
    changes_behind = serializers.IntegerField(
        source="overview.changes_behind",
        allow_null=True,
        help_text="The changes in between; null: unknown.",
    )
    lost = NewestMirroredSerializer(
        many=True, help_text="Snapshots that only the present home has."
    )
    running = serializers.SerializerMethodField(
        help_text="Operations that run at the present home, by id."
    )
    workspaces = serializers.IntegerField(help_text="How many stay at the old home.")
    owners = serializers.SerializerMethodField(help_text="Of the first of them.")
    copied = serializers.SerializerMethodField(
        help_text="The first workspaces that are copied to the mirror, by name. That "
        "goes on while their site answers; they can be restored there."
    )
    copies = serializers.IntegerField(
        source="copied", help_text="How many workspaces are copied to the mirror."
    )
    needs = serializers.SerializerMethodField(
        help_text="What else needs the template, such as “2 warm pools”."
    )
    other_mirrors = serializers.SerializerMethodField(
        help_text="Sites of the other mirrors, which follow the new home."
    )

    @extend_schema_field(serializers.ListField(child=serializers.IntegerField()))
    def get_running(self, preview: PromotionPreview) -> list[int]:
        return [each.pk for each in preview.operations]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_owners(self, preview: PromotionPreview) -> list[str]:
        return sorted({each.owner.username for each in preview.named})

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_copied(self, preview: PromotionPreview) -> list[str]:
        return [each.name for each in preview.named_copies]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_needs(self, preview: PromotionPreview) -> list[str]:
        return [each.words for each in preview.needs]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_other_mirrors(self, preview: PromotionPreview) -> list[str]:
        return [each.site.name for each in preview.others]


class WayBackSerializer(serializers.Serializer[WayBackPreview]):
    """What a former home loses when it is re-established."""

    common = NewestMirroredSerializer(
        allow_null=True, help_text="The newest snapshot of both; null: none is known."
    )
    discarded = NewestMirroredSerializer(
        many=True, help_text="Snapshots that only the former home has."
    )
    needed = NewestMirroredSerializer(
        many=True, help_text="Those of them that clones need, which prevent it."
    )
    workspaces = serializers.IntegerField(help_text="How many are there, and stay.")
    waiting = NewestMirroredSerializer(
        allow_null=True, help_text="What is transferred first; null: nothing."
    )


class MirrorListQuery(serializers.Serializer[Any]):
    template = serializers.CharField(required=False, help_text="Its id or its name.")
    site = serializers.CharField(source="site__name", required=False)
    state = serializers.ChoiceField(
        choices=[c for c in Mirror.State.choices if c[0] not in ENDED],
        required=False,
    )


class MirrorChangeSerializer(serializers.Serializer[Any]):
    """Fields that are left out do not change."""

    start = serializers.ChoiceField(
        choices=Mirror.Start.choices,
        required=False,
        help_text="When transfers start; schedule needs cron.",
    )
    cron = Text(
        required=False,
        allow_blank=True,
        max_length=schedules.LONGEST,
        help_text="Five fields in UTC, such as 0 3 * * mon-fri. Times that were missed "
        "are made up for once.",
    )
    throttle_kilobytes = Number(
        min_value=0,
        max_value=LARGEST_THROTTLE,
        required=False,
        help_text="The most that a transfer may use, in kB per second. 0: no limit.",
    )

    keep = Number(
        min_value=1,
        max_value=MOST_KEPT,
        required=False,
        help_text="How many snapshots stay at the site, besides those that clones "
        "need. It applies from the next transfer on.",
    )


class MirrorCreateSerializer(MirrorChangeSerializer):
    """Defaults: transfers start at once, without a throttle; ten snapshots stay."""

    template = IdOrName(help_text="Its id or its name.")
    site = IdOrName(help_text="Where to mirror it to: its id or its name.")
    aggregate = Text(
        required=False,
        allow_blank=True,
        max_length=255,
        help_text="Where its volume is made; empty: the site chooses.",
    )


class MirrorTransferSerializer(serializers.Serializer[Any]):
    snapshot = IdOrName(
        required=False,
        help_text="Its id or its name; left out: the template's default snapshot.",
    )
