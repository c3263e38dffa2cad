"""Warm pools, for administrators."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.api.fields import IdOrName, Number, Text
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, chosen
from provisioner.catalog.queries import templates_visible_to
from provisioner.leases.actions.leases import LONGEST_SECONDS
from provisioner.lib.refusals import InvalidRequest
from provisioner.pools import queries
from provisioner.pools.actions import (
    LARGEST,
    MOST_WINDOWS,
    SHORTEST_SECONDS,
    pool_create,
    pool_delete,
    pool_update,
)
from provisioner.pools.models import Pool
from provisioner.workspaces.models import Workspace


class PoolFiguresSerializer(serializers.Serializer[Any]):
    """What it costs, and what it has been good for."""

    wanted = serializers.IntegerField(help_text="How many members are due now.")
    ready = serializers.IntegerField()
    making = serializers.IntegerField()
    failed = serializers.IntegerField()
    leaving = serializers.IntegerField(help_text="Those that are being retired.")
    unique_bytes = serializers.IntegerField(
        help_text="Space that purging all members would free, as measured by ONTAP."
    )
    unmeasured = serializers.IntegerField(help_text="Those not measured yet.")
    warm = serializers.IntegerField(help_text="How many were claimed from it.")
    cold = serializers.IntegerField(
        help_text="How many were asked for that it had none for."
    )
    seconds_saved = serializers.FloatField(
        help_text="How long provisioning the claimed members had taken."
    )
    last_asked_at = serializers.DateTimeField(allow_null=True)


class PoolSerializer(serializers.ModelSerializer[Pool]):
    template = serializers.CharField(source="template.name")
    template_id = serializers.IntegerField()
    site = serializers.CharField(source="template.site.name")
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
        # Read once for a whole list: all its serializers share the context.
        if "figures" not in self.context:
            shown: Any = self.root.instance
            listed = [shown] if isinstance(shown, Pool) else list(shown)
            self.context["figures"] = {
                each.pool.pk: each for each in queries.overviews_of(listed)
            }
        return PoolFiguresSerializer(self.context["figures"][pool.pk]).data


def _span(**kwargs: Any) -> Number:
    return Number(min_value=SHORTEST_SECONDS, max_value=LONGEST_SECONDS, **kwargs)


class PoolChangeSerializer(serializers.Serializer[Any]):
    """What is left out stays."""

    size = Number(
        min_value=0,
        max_value=LARGEST,
        required=False,
        help_text="How many members outside all windows.",
    )
    windows = serializers.ListField(
        child=Text(max_length=80),
        max_length=MOST_WINDOWS,
        required=False,
        help_text="Such as “mon-fri 07:00-19:00 20”: days, times in UTC, a size. The "
        "first match applies.",
    )
    max_age_seconds = _span(
        required=False, help_text="Members older than this are replaced."
    )
    idle_seconds = _span(
        required=False,
        allow_null=True,
        help_text="After each such time without a request the size is halved; null: "
        "never.",
    )


class PoolCreateSerializer(PoolChangeSerializer):
    """What is left out is as usual: members for a day, idle after two."""

    template = IdOrName(help_text="Its id or its name.")
    purpose = serializers.ChoiceField(choices=Workspace.Purpose.choices)
    owner = Text(
        max_length=150,
        help_text="The account, by its username: its requests are answered from the "
        "pool, and members have its uid.",
    )
    size = Number(
        min_value=0,
        max_value=LARGEST,
        help_text="How many members outside all windows.",
    )


class PoolViewSet(ApiViewSet):
    """For administrators: workspaces made ahead, before anybody asks."""

    queryset = Pool.objects.none()
    serializer_class = PoolSerializer

    def get_queryset(self) -> QuerySet[Pool]:
        permissions.require(permissions.can_administer(self.user))
        return queries.all_pools()

    @described("List warm pools", ok=PoolSerializer, refused=[400, 403])
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described("Get a warm pool", ok=PoolSerializer, refused=[403, 404])
    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(self.get_serializer(self.get_object()).data)

    @described(
        "Make a warm pool",
        "It is filled behind everybody's requests. Requests of that account for that "
        "template and purpose are then answered from it.",
        body=PoolCreateSerializer,
        ok=PoolSerializer,
        status=201,
        refused=[403, 409],
    )
    def create(self, request: Request) -> Response:
        permissions.require(permissions.can_administer(self.user))
        asked = self.read_body(PoolCreateSerializer)
        template = chosen(
            templates_visible_to(self.user),
            word="template",
            id_or_name=asked.pop("template"),
            hint="Give its id.",
        )
        username = asked.pop("owner")
        owner = User.objects.filter(username=username).first()
        if owner is None:
            raise InvalidRequest(f"There is no account “{username}”.")
        pool = pool_create(by=self.user, template=template, owner=owner, **asked)
        body = self.get_serializer(self.get_queryset().get(pk=pool.pk)).data
        where = reverse("api:pool-detail", [pool.pk], request=request)
        return Response(body, status=201, headers={"Location": where})

    @described(
        "Change a warm pool",
        "An idle pool, and one that pauses after failures, is filled again.",
        body=PoolChangeSerializer,
        ok=PoolSerializer,
        refused=[403, 404, 409],
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        pool = self.get_object()
        asked = self.read_body(PoolChangeSerializer)
        pool_update(by=self.user, pool=pool, **asked)
        return Response(self.get_serializer(self.get_queryset().get(pk=pk)).data)

    @described(
        "Delete a warm pool",
        "Its members are retired; `figures` counts them. Claimed workspaces stay.",
        ok=None,
        status=204,
        refused=[403, 404],
    )
    def destroy(self, request: Request, pk: int) -> Response:
        pool_delete(by=self.user, pool=self.get_object())
        return Response(status=204)
