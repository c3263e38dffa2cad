"""Lists of webhooks, and of deliveries to one."""

from __future__ import annotations

from typing import Any

from provisioner.notify.actions.webhooks import (
    delivery_repeat,
    webhook_delete,
    webhook_update,
)
from provisioner.notify.models import Webhook, WebhookDelivery
from provisioner.notify.webhooks import webhooks_visible_to
from provisioner.web.lists.acts import Act
from provisioner.web.lists.listing import Column, Listing, searched


class TurnOn(Act[Webhook]):
    name, label, done = "on", "Turn on", "Turned on"
    lead = "Their failure counts start again."

    def do(self, row: Webhook, **told: Any) -> Webhook:
        return webhook_update(by=self.by, webhook=row, is_enabled=True)

    def says(self, row: Webhook, result: Webhook) -> str:
        if row.is_enabled:
            return "It stays on."
        return "It receives events again."


class TurnOff(Act[Webhook]):
    name, label, done = "off", "Turn off", "Turned off"

    def do(self, row: Webhook, **told: Any) -> Webhook:
        return webhook_update(by=self.by, webhook=row, is_enabled=False)

    def says(self, row: Webhook, result: Webhook) -> str:
        if not row.is_enabled:
            return "It stays off."
        return "It receives no events until it is turned on."


class Delete(Act[Webhook]):
    name, label, done = "delete", "Delete", "Deleted"
    is_dangerous = True

    def do(self, row: Webhook, **told: Any) -> None:
        webhook_delete(by=self.by, webhook=row)

    def says(self, row: Webhook, result: None) -> str:
        return "It is deleted with its deliveries."


WEBHOOKS = Listing[Webhook](
    name="webhooks",
    one="webhook",
    many="webhooks",
    columns=(
        Column("id", "", "pk", "pk"),
        Column("host", "Address", "host", "place"),
        Column("format", "Format", lambda row: row.get_format_display(), "format"),
        Column("owner", "Owner", "owner.username", "owner__username"),
        Column("about", "About", lambda row: row.template.name if row.template else ""),
        Column("is_enabled", "State", "is_enabled", "is_enabled"),
        Column("failing_since", "", "failing_since", "failing_since", has_gaps=True),
        Column("disabled_reason", "", "disabled_reason"),
        Column("events", "", lambda row: " ".join(row.events)),
        Column("created_at", "", "created_at", "created_at"),
    ),
    cells="notify/_cells.html",
    matching=searched(
        webhooks_visible_to, "place", "owner__username", "template__name"
    ),
    usual="host",
    acts=(TurnOn, TurnOff, Delete),
    quiet_below=10,
)


class SendAgain(Act[WebhookDelivery]):
    name, label, done = "again", "Send again", "Queued to be sent again"
    lead = "Each is sent unchanged, with its id. A receiver that has it may ignore it."

    def do(self, row: WebhookDelivery, **told: Any) -> WebhookDelivery:
        return delivery_repeat(by=self.by, delivery=row)

    def says(self, row: WebhookDelivery, result: WebhookDelivery) -> str:
        return f"It is sent to {row.webhook.host} again."


def deliveries_of(webhook: Webhook) -> Listing[WebhookDelivery]:
    """Return the list of deliveries to one webhook."""
    return Listing(
        name="deliveries",
        one="message",
        many="messages",
        columns=(
            Column("message_id", "", lambda row: str(row.message_id)),
            Column("event", "Event", "event", "event"),
            Column(
                *("created_at", "When", "created_at", "pk"),
                begins_descending=True,
            ),
            Column("state", "State", "state", "state"),
            Column(
                *("response_code", "Result", "response_code", "response_code"),
                has_gaps=True,
            ),
            Column("error", "", "error"),
            Column("attempts", "", "attempts"),
            Column("duration_ms", "", "duration_ms"),
            Column("ended_at", "", "ended_at"),
            Column("actions", "Actions", None, is_label_spoken=True),
        ),
        cells="notify/_delivery_cells.html",
        matching=searched(
            lambda user: webhook.deliveries.select_related("webhook__owner"),
            *("event", "state", "error", "body"),
        ),
        usual="-created_at",
        acts=(SendAgain,),
        quiet_below=10,
        nothing="Nothing has been sent yet.",
    )
