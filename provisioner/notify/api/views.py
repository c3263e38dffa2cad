"""The API of notifications: subscriptions, channels and webhooks."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, ShortListViewSet, chosen
from provisioner.catalog.models import Template
from provisioner.catalog.queries import templates_visible_to
from provisioner.notify.actions.channels import choose_channels
from provisioner.notify.actions.subscriptions import (
    template_subscribe,
    template_unsubscribe,
)
from provisioner.notify.actions.webhooks import (
    delivery_repeat,
    webhook_create,
    webhook_delete,
    webhook_renew_secret,
    webhook_test,
    webhook_update,
)
from provisioner.notify.api import examples
from provisioner.notify.api.shapes import (
    DeliverySerializer,
    NotificationChangeSerializer,
    NotificationChoiceSerializer,
    SubscriptionSerializer,
    WebhookChangeSerializer,
    WebhookCreateSerializer,
    WebhookSerializer,
    WebhookWithSecretSerializer,
)
from provisioner.notify.channels import STAY, Channel, channels_by_topic
from provisioner.notify.models import (
    NotificationChoice,
    Subscription,
    Topic,
    Webhook,
    WebhookDelivery,
)
from provisioner.notify.webhooks import webhooks_visible_to


class SubscriptionViewSet(ApiViewSet):
    """Your mails about a template."""

    queryset = Template.objects.none()
    serializer_class = SubscriptionSerializer

    def get_queryset(self) -> QuerySet[Template]:
        return templates_visible_to(self.user)

    @described(
        "Get your subscription to a template's mails",
        ok=SubscriptionSerializer,
        refused=[403, 404],
    )
    @action(methods=["get"], detail=True)
    def subscription(self, request: Request, pk: int) -> Response:
        permissions.require(permissions.can_be_told(self.user))
        return self._as_it_is()

    @described(
        "Subscribe to a template's mails",
        "One mail when its build or test fails, and one when it recovers.",
        ok=SubscriptionSerializer,
        refused=[403, 404],
        operation_id="templates_subscribe",
    )
    @subscription.mapping.put  # type: ignore[untyped-decorator]  # of REST framework
    def subscribe(self, request: Request, pk: int) -> Response:
        template_subscribe(by=self.user, template=self.get_object())
        return self._as_it_is()

    @described(
        "Unsubscribe from a template's mails",
        ok=SubscriptionSerializer,
        refused=[403, 404],
        operation_id="templates_unsubscribe",
    )
    @subscription.mapping.delete  # type: ignore[untyped-decorator]  # of REST framework
    def unsubscribe(self, request: Request, pk: int) -> Response:
        template_unsubscribe(by=self.user, template=self.get_object())
        return self._as_it_is()

    def _as_it_is(self) -> Response:
        rows = Subscription.objects.filter(user=self.user, template=self.get_object())
        said = {"subscribed": rows.exists(), "address": self.user.email}
        return Response(SubscriptionSerializer(said).data)


class NotificationChoiceViewSet(ShortListViewSet):
    """Your notification settings."""

    queryset = NotificationChoice.objects.none()
    serializer_class = NotificationChoiceSerializer
    lookup_field = "topic"
    lookup_value_converter = "str"

    @described(
        "List notification settings",
        ok=NotificationChoiceSerializer,
        refused=[403],
    )
    def list(self, request: Request) -> Response:
        permissions.require(permissions.can_be_told(self.user))
        return self.page_of(
            [_said(*each) for each in channels_by_topic(self.user).items()]
        )

    @described(
        "Change the notification settings of a topic",
        "Mails about `leases` cannot be turned off. Mails about `workspaces` are off "
        "until you turn them on.",
        body=NotificationChangeSerializer,
        ok=NotificationChoiceSerializer,
        refused=[403, 404, 409],
    )
    def partial_update(self, request: Request, topic: str) -> Response:
        asked = self.read_body(NotificationChangeSerializer)
        if topic not in Topic.values:
            raise Http404
        chosen = {Channel(name): is_on for name, is_on in asked.items()}
        channels = choose_channels(by=self.user, topic=Topic(topic), chosen=chosen)
        return Response(_said(Topic(topic), channels))


def _said(topic: Topic, channels: Set[Channel]) -> dict[str, Any]:
    is_on = {str(channel): channel in channels for channel in Channel}
    return {"topic": topic, **is_on, "stays": sorted(STAY.get(topic, ()))}


class WebhookViewSet(ApiViewSet):
    """Addresses that events are posted to: yours, or everybody's for administrators."""

    queryset = Webhook.objects.none()
    serializer_class = WebhookSerializer

    def get_queryset(self) -> QuerySet[Webhook]:
        return webhooks_visible_to(self.user)

    @described(
        "List webhooks",
        ok=WebhookSerializer,
        refused=[400],
        examples=examples.LIST,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Get a webhook",
        ok=WebhookSerializer,
        refused=[404],
        examples=examples.GET,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(self.get_object())

    @described(
        "Create a webhook",
        "Messages of the format `cloneyard` are signed: `Cloneyard-Signature` is `v1=` "
        "and the HMAC-SHA256, in hexadecimal digits, of `Cloneyard-Timestamp`, a "
        "dot, and the body, keyed with the secret. Only this answer contains it. A "
        "message that was not accepted (2xx) is resent with the same "
        "`Cloneyard-Delivery` for some hours. Slack gets blocks, Teams an Adaptive "
        "Card; messages that they reject permanently are not resent.",
        body=WebhookCreateSerializer,
        ok=WebhookWithSecretSerializer,
        status=201,
        refused=[403, 409],
        examples=examples.CREATE,
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(WebhookCreateSerializer)
        template = asked["template"]
        webhook = webhook_create(
            by=self.user,
            url=asked["url"],
            events=asked["events"],
            template=None if template is None else self._template(template),
            is_for_all=asked["for_all"],
            format=asked["format"],
        )
        where = reverse("api:webhook-detail", [webhook.pk], request=request)
        body = self._with_secret(webhook)
        return Response(body, status=201, headers={"Location": where})

    def _template(self, id_or_name: int | str) -> Template:
        templates = templates_visible_to(self.user)
        return chosen(templates, word="template", id_or_name=id_or_name)

    @described(
        "Change a webhook",
        body=WebhookChangeSerializer,
        ok=WebhookSerializer,
        refused=[403, 404, 409],
        examples=examples.CHANGE,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        webhook = self.get_object()
        asked = self.read_body(WebhookChangeSerializer)
        changed = webhook_update(
            by=self.user,
            webhook=webhook,
            url=asked.get("url"),
            events=asked.get("events"),
            is_enabled=asked.get("enabled"),
        )
        return self.shown(changed)

    @described("Delete a webhook", ok=None, status=204, refused=[403, 404])
    def destroy(self, request: Request, pk: int) -> Response:
        webhook_delete(by=self.user, webhook=self.get_object())
        return Response(status=204)

    @described(
        "Send a test message",
        "Sent once. Get the delivery to see the result.",
        ok=DeliverySerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.TEST,
    )
    @action(methods=["post"], detail=True)
    def test(self, request: Request, pk: int) -> Response:
        delivery = webhook_test(by=self.user, webhook=self.get_object())
        return Response(DeliverySerializer(delivery).data, status=202)

    @described(
        "Rotate the secret of a webhook",
        "It takes effect at once. Only this answer contains the secret.",
        ok=WebhookWithSecretSerializer,
        refused=[403, 404, 409],
        examples=examples.SECRET,
    )
    @action(methods=["post"], detail=True)
    def secret(self, request: Request, pk: int) -> Response:
        webhook = webhook_renew_secret(by=self.user, webhook=self.get_object())
        return Response(self._with_secret(webhook))

    def _with_secret(self, webhook: Webhook) -> dict[str, Any]:
        context = self.get_serializer_context()
        return WebhookWithSecretSerializer(webhook, context=context).data


class DeliveryViewSet(ApiViewSet):
    """A webhook's deliveries, kept for 30 days."""

    queryset = WebhookDelivery.objects.none()
    serializer_class = DeliverySerializer

    def get_queryset(self) -> QuerySet[WebhookDelivery]:
        webhook = get_object_or_404(
            webhooks_visible_to(self.user), pk=self.kwargs["webhook_pk"]
        )
        return webhook.deliveries.order_by("-pk")

    @described(
        "List a webhook's deliveries",
        ok=DeliverySerializer,
        refused=[400, 404],
        examples=examples.DELIVERIES,
    )
    def list(self, request: Request, webhook_pk: int) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Get a delivery",
        ok=DeliverySerializer,
        refused=[404],
        examples=examples.DELIVERIES,
    )
    def retrieve(self, request: Request, webhook_pk: int, pk: int) -> Response:
        return self.shown(self.get_object())

    @described(
        "Send a delivery again",
        "With the same `Cloneyard-Delivery`, so a receiver can ignore a repeat.",
        ok=DeliverySerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.AGAIN,
    )
    @action(methods=["post"], detail=True)
    def again(self, request: Request, webhook_pk: int, pk: int) -> Response:
        delivery = delivery_repeat(by=self.user, delivery=self.get_object())
        return Response(DeliverySerializer(delivery).data, status=202)
