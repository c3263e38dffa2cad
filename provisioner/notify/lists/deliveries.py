"""The list of deliveries to a webhook."""

from __future__ import annotations

from typing import Any

from provisioner.notify.actions.webhooks import delivery_repeat
from provisioner.notify.models import Webhook, WebhookDelivery
from provisioner.web.lists.acts import Act
from provisioner.web.lists.listing import Column, Listing, searched


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
