"""Serializers of webhooks, subscriptions and notification settings."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.accounts.models import User
from provisioner.api.fields import Flag, IdOrName, Text
from provisioner.gateways.webhooks.addresses import LONGEST_URL
from provisioner.notify.channels import Channel
from provisioner.notify.models import (
    Topic,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
    WebhookFormat,
)


class SubscriptionSerializer(serializers.Serializer[Any]):
    subscribed = serializers.BooleanField(
        help_text="Whether you get a mail when it fails or recovers."
    )
    address = serializers.CharField(
        help_text="Your mail address; empty: no mail can be sent."
    )


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    owner = serializers.CharField(source="owner.username")
    template = serializers.CharField(
        source="template.name",
        allow_null=True,
        default=None,
        help_text="null: all templates, and workspaces.",
    )
    for_all = serializers.BooleanField(
        source="is_for_all", help_text="Also about everybody's workspaces."
    )
    enabled = serializers.BooleanField(source="is_enabled")
    url = serializers.SerializerMethodField(
        help_text="In full for its owner only: the address is a secret."
    )

    def get_url(self, webhook: Webhook) -> str:
        user = self.context["request"].user
        assert isinstance(user, User)
        return webhook.address_for(user)

    class Meta:
        model = Webhook
        fields: tuple[str, ...] = (
            "id",
            "owner",
            "template",
            "for_all",
            "url",
            "format",
            "events",
            "enabled",
            "disabled_reason",
            "failing_since",
            "created_at",
        )
        read_only_fields = fields


class WebhookWithSecretSerializer(WebhookSerializer):
    secret = serializers.CharField(
        help_text="The key that signs messages. Shown only once: store it. Empty "
        "for slack and teams, whose messages are not signed."
    )

    class Meta(WebhookSerializer.Meta):
        fields: tuple[str, ...] = ("secret", *WebhookSerializer.Meta.fields)
        read_only_fields = fields


class WebhookCreateSerializer(serializers.Serializer[Any]):
    url = Text(max_length=LONGEST_URL)
    format = serializers.ChoiceField(
        choices=WebhookFormat.choices,
        default=WebhookFormat.CLONEYARD,
        help_text="`slack` for an incoming webhook of Slack, `teams` for a workflow of "
        "Microsoft Teams that begins with a webhook request.",
    )
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=WebhookEvent.choices), allow_empty=False
    )
    template = IdOrName(
        default=None, allow_null=True, help_text="Its id or name; null: all."
    )
    for_all = Flag(default=False, help_text="For administrators.")


class WebhookChangeSerializer(serializers.Serializer[Any]):
    """Fields that are left out do not change."""

    url = Text(max_length=LONGEST_URL, required=False)
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=WebhookEvent.choices),
        allow_empty=False,
        required=False,
    )
    enabled = Flag(required=False)


class DeliverySerializer(serializers.ModelSerializer[WebhookDelivery]):
    state = serializers.ChoiceField(choices=WebhookDelivery.State.choices)

    class Meta:
        model = WebhookDelivery
        fields = (
            "id",
            "message_id",
            "event",
            "state",
            "body",
            "attempts",
            "created_at",
            "tried_at",
            "next_try_at",
            "ended_at",
            "response_code",
            "response_text",
            "error",
            "duration_ms",
        )
        read_only_fields = fields


class NotificationChoiceSerializer(serializers.Serializer[Any]):
    topic = serializers.ChoiceField(choices=Topic.choices)
    mail = serializers.BooleanField()
    webhook = serializers.BooleanField(
        help_text="Your webhooks, each for its own events."
    )
    stays = serializers.ListField(
        child=serializers.ChoiceField(choices=[str(channel) for channel in Channel]),
        help_text="The channels that cannot be turned off.",
    )


class NotificationChangeSerializer(serializers.Serializer[Any]):
    """Fields that are left out do not change."""

    mail = Flag(required=False)
    webhook = Flag(required=False)
