"""The list of webhooks."""

from __future__ import annotations

from typing import Any

from provisioner.notify.actions.webhooks import webhook_delete, webhook_update
from provisioner.notify.models import Webhook
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
