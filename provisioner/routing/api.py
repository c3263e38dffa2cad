"""The API of routing rules and of the load they move, for administrators."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.accounts.models import Team, User
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, ShortListViewSet
from provisioner.routing import actions, queries
from provisioner.routing.kinds import Purpose
from provisioner.routing.models import AFTER_THE_WAIT, RoutingRule, TrafficDay
from provisioner.routing.traffic import (
    AMOUNTS,
    moved_by_day,
    moved_in_all,
    traffic_matching,
)
from provisioner.sites.models import PerforceServer, Site, WhenBehind
from provisioner.sites.models.perforce_servers import DAY_SECONDS


def _named(rows: QuerySet[Any], *, by: str = "name", **kwargs: Any) -> Any:
    """Return a field with a row by its name; null matches everything."""
    return serializers.SlugRelatedField(
        slug_field=by, queryset=rows, allow_null=True, default=None, **kwargs
    )


class RoutingRuleSerializer(serializers.Serializer[Any]):
    """A rule; conditions that are null or empty match everything."""

    id = serializers.IntegerField(read_only=True)
    position = serializers.IntegerField(
        read_only=True, help_text="The matching rule with the lowest one counts."
    )
    purpose = serializers.ChoiceField(
        choices=Purpose.choices, allow_blank=True, default=""
    )
    account = _named(
        User.objects.all(),
        by="username",
        help_text="The owner of the workspace or template.",
    )
    team = _named(Team.objects.all())
    site = _named(Site.objects.all())
    server = serializers.SlugRelatedField(
        slug_field="name", queryset=PerforceServer.objects.all()
    )
    catch_up_seconds = serializers.IntegerField(
        min_value=0,
        max_value=DAY_SECONDS,
        default=300,
        help_text="How long to wait until the server has the change.",
    )
    when_behind = serializers.ChoiceField(
        choices=AFTER_THE_WAIT,
        default=WhenBehind.WAIT.value,
        help_text="What happens after that.",
    )


class RoutingRuleViewSet(ShortListViewSet):
    """For administrators: which Perforce server does what."""

    queryset = RoutingRule.objects.none()
    serializer_class = RoutingRuleSerializer

    def get_queryset(self) -> QuerySet[RoutingRule]:
        permissions.require(permissions.can_administer(self.user))
        return queries.all_rules()

    @described("List routing rules", ok=RoutingRuleSerializer, refused=[403])
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Add a routing rule",
        "It comes behind all others, and counts for what is made from now on. A rule "
        "that its server's kind cannot follow is refused.",
        body=RoutingRuleSerializer,
        ok=RoutingRuleSerializer,
        status=201,
        refused=[403],
    )
    def create(self, request: Request) -> Response:
        permissions.require(permissions.can_administer(self.user))
        asked = self.read_body(RoutingRuleSerializer)
        rule = actions.routing_rule_add(by=self.user, **asked)
        return self.shown_now(rule, status=201)

    @described(
        "Move a routing rule up",
        "It counts before the one above it. The first one stays where it is.",
        ok=RoutingRuleSerializer,
        refused=[403, 404],
    )
    @action(detail=True, methods=["post"])
    def up(self, request: Request, pk: int) -> Response:
        rule = self.get_object()
        actions.routing_rule_move_up(by=self.user, rule=rule)
        return self.shown_now(rule)

    @described(
        "Remove a routing rule",
        "What it sent to its server stays there.",
        ok=None,
        status=204,
        refused=[403, 404],
    )
    def destroy(self, request: Request, pk: int) -> Response:
        actions.routing_rule_remove(by=self.user, rule=self.get_object())
        return Response(status=204)


class TrafficSerializer(serializers.ModelSerializer[TrafficDay]):
    """What was asked of a server on a day (UTC), for an account and a purpose."""

    server = serializers.CharField(source="server.name")
    account = serializers.CharField(source="account.username")

    class Meta:
        model = TrafficDay
        fields = ("id", "day", "server", "purpose", "account", *AMOUNTS)
        read_only_fields = fields


class TrafficQuery(serializers.Serializer[Any]):
    text = serializers.CharField(
        default="", allow_blank=True, max_length=100, help_text="Server or account."
    )
    purpose = serializers.ChoiceField(
        choices=Purpose.choices, default="", allow_blank=True
    )
    since = serializers.DateField(required=False)
    until = serializers.DateField(required=False)


class MovedSerializer(serializers.Serializer[Any]):
    """An amount, and how much of it went to other servers than commit servers."""

    total = serializers.IntegerField()
    moved = serializers.IntegerField()
    percent = serializers.IntegerField(
        allow_null=True, help_text="The share moved; null of nothing."
    )


class MovedInAllSerializer(serializers.Serializer[Any]):
    commands = MovedSerializer()
    synced_files = MovedSerializer()
    synced_bytes = MovedSerializer()
    flushed_files = MovedSerializer()


class TrafficViewSet(ApiViewSet):
    """For administrators: what was asked of Perforce servers, and how much moved."""

    queryset = TrafficDay.objects.none()
    serializer_class = TrafficSerializer

    def get_queryset(self) -> QuerySet[TrafficDay]:
        permissions.require(permissions.can_administer(self.user))
        asked = self.read_query(TrafficQuery)
        return traffic_matching(self.user, **asked).order_by("-day", "-pk")

    @described(
        "List traffic by day",
        "Sums by day (UTC), server, purpose and account, newest first.",
        ok=TrafficSerializer,
        refused=[400, 403],
        parameters=[TrafficQuery],
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Get the share moved",
        "How much went to other servers than commit servers, in the days asked for.",
        ok=MovedInAllSerializer,
        refused=[400, 403],
        parameters=[TrafficQuery],
    )
    @action(detail=False, methods=["get"])
    def moved(self, request: Request) -> Response:
        moved = moved_in_all(moved_by_day(self.get_queryset()))
        return Response(MovedInAllSerializer(moved).data)
