"""/api/v1/events: the audit log."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet
from provisioner.audit_log import queries
from provisioner.audit_log.models import Event

FOR_ADMINISTRATORS = ("via", "ip", "user_agent")


class EventSerializer(serializers.ModelSerializer[Event]):
    """Only administrators see `via`, `ip` and `user_agent`."""

    actor = serializers.CharField(
        source="actor_name", help_text="A username, as it was; “” for Cloneyard itself."
    )
    subject_kind = serializers.CharField()
    via = serializers.CharField(
        allow_null=True,
        help_text="Token, session or job; null unless you are an administrator.",
    )
    data_ = serializers.DictField(child=serializers.JSONField(allow_null=True))

    class Meta:
        model = Event
        fields = (
            "id",
            "at",
            "kind",
            "message",
            "reason",
            "actor",
            "subject_kind",
            "subject_id",
            "subject",
            "workspace",
            "template",
            "via",
            "ip",
            "user_agent",
            "data_",
        )
        read_only_fields = fields
        extra_kwargs = {"user_agent": {"allow_null": True}}  # noqa: RUF012

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        fields["data"] = fields.pop("data_")
        return fields

    def to_representation(self, instance: Event) -> Any:
        shown = super().to_representation(instance)
        if not self.context["request"].user.is_administrator:
            shown |= dict.fromkeys(FOR_ADMINISTRATORS)
        return shown


class EventListQuery(serializers.Serializer[Any]):
    workspace = serializers.IntegerField(required=False, min_value=1)
    template = serializers.IntegerField(required=False, min_value=1)
    text = serializers.CharField(default="", allow_blank=True, max_length=100)
    actor = serializers.CharField(default="", allow_blank=True, max_length=150)
    kind = serializers.CharField(
        default="", allow_blank=True, max_length=60, help_text="Or its beginning."
    )
    subject = serializers.CharField(default="", allow_blank=True, max_length=200)
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)


class EventViewSet(ApiViewSet):
    """Events: of your own workspaces, or all for administrators."""

    queryset = Event.objects.none()
    serializer_class = EventSerializer

    def get_queryset(self) -> QuerySet[Event]:
        return queries.events_visible_to(self.user)

    @described(
        "List events",
        ok=EventSerializer,
        refused=[400],
        parameters=[EventListQuery],
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(EventListQuery)
        about = {
            key: query.pop(key) for key in ("workspace", "template") if key in query
        }
        events = queries.events_matching(self.user, **query)
        return self.page_of(events.filter(**about))

    @described("Get an event", ok=EventSerializer, refused=[404])
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(self.get_object())
