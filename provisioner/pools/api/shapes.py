"""Serializers of warm pools."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from provisioner.api.fields import IdOrName, Number, Text, read_once
from provisioner.leases.actions.leases import LONGEST_SECONDS
from provisioner.pools import queries
from provisioner.pools.actions import (
    LARGEST,
    MOST_WINDOWS,
    SHORTEST_SECONDS,
)
from provisioner.pools.models import Pool
from provisioner.workspaces.models import Workspace


class PoolFiguresSerializer(serializers.Serializer[Any]):
    """What a pool costs, and what it has saved."""

    wanted = serializers.IntegerField(help_text="How many members it should have now.")
    ready = serializers.IntegerField()
    making = serializers.IntegerField()
    failed = serializers.IntegerField()
    leaving = serializers.IntegerField(help_text="Members being retired.")
    unique_bytes = serializers.IntegerField(
        help_text="Space that purging all members would free, as measured by ONTAP."
    )
    unmeasured = serializers.IntegerField(help_text="Members not measured yet.")
    warm = serializers.IntegerField(help_text="Requests answered from the pool.")
    cold = serializers.IntegerField(help_text="Requests that found the pool empty.")
    seconds_saved = serializers.FloatField(
        help_text="The time that provisioning the claimed members took."
    )
    last_asked_at = serializers.DateTimeField(allow_null=True)


class PoolSerializer(serializers.ModelSerializer[Pool]):
    template = serializers.CharField(source="template.name")
    template_id = serializers.IntegerField()
    site = serializers.CharField(source="site.name")
    owner = serializers.CharField(source="owner.username")
    figures = serializers.SerializerMethodField()

    class Meta:
        model = Pool
        fields = (
            "id",
            "template",
            "template_id",
            "site",
            "purpose",
            "owner",
            "size",
            "windows",
            "max_age_seconds",
            "idle_seconds",
            "failures",
            "retry_at",
            "status_message",
            "created_at",
            "figures",
        )
        read_only_fields = fields

    @extend_schema_field(PoolFiguresSerializer)
    def get_figures(self, pool: Pool) -> Any:
        by_pool = read_once(self, "figures", _overviews_by_pool)
        return PoolFiguresSerializer(by_pool[pool.pk]).data


def _overviews_by_pool(pools: list[Pool]) -> dict[int, queries.PoolOverview]:
    return {each.pool.pk: each for each in queries.overviews_of(pools)}


def _span(**kwargs: Any) -> Number:
    return Number(min_value=SHORTEST_SECONDS, max_value=LONGEST_SECONDS, **kwargs)


class PoolChangeSerializer(serializers.Serializer[Any]):
    """Fields that are left out do not change."""

    size = Number(
        min_value=0,
        max_value=LARGEST,
        required=False,
        help_text="Number of members outside all windows.",
    )
    windows = serializers.ListField(
        child=Text(max_length=80),
        max_length=MOST_WINDOWS,
        required=False,
        help_text="For example “mon-fri 07:00-19:00 20”: days, UTC times, a size. The "
        "first match applies.",
    )
    max_age_seconds = _span(
        required=False, help_text="Members older than this are replaced."
    )
    idle_seconds = _span(
        required=False,
        allow_null=True,
        help_text="The size is halved after each such time without a request; null: "
        "never.",
    )


class PoolCreateSerializer(PoolChangeSerializer):
    """Defaults: members live a day, and the pool is idle after two."""

    template = IdOrName(help_text="Its id or its name.")
    site = IdOrName(
        required=False,
        help_text="Its id or its name: the template's site, or that of a mirror. Left "
        "out: the template's.",
    )
    purpose = serializers.ChoiceField(choices=Workspace.Purpose.choices)
    owner = Text(
        max_length=150,
        help_text="The account, by its username: its requests are answered from the "
        "pool, and members have its uid.",
    )
    size = Number(
        min_value=0,
        max_value=LARGEST,
        help_text="Number of members outside all windows.",
    )
