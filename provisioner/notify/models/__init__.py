"""The models of this feature, with their constraints."""

from __future__ import annotations

from provisioner.notify.models.choices import NotificationChoice, Topic
from provisioner.notify.models.mails import Notification
from provisioner.notify.models.subscriptions import Subscription
from provisioner.notify.models.webhooks import (
    Webhook,
    WebhookDelivery,
    WebhookEvent,
    WebhookFormat,
    new_salt,
)

__all__ = [
    "Notification",
    "NotificationChoice",
    "Subscription",
    "Topic",
    "Webhook",
    "WebhookDelivery",
    "WebhookEvent",
    "WebhookFormat",
    "new_salt",
]
