"""Create and change webhooks, renew their secrets, and send messages by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template
from provisioner.gateways.webhooks.addresses import (
    AddressRefused,
    check_address,
    literal_address,
    read_networks,
    read_url,
)
from provisioner.lib import clocks
from provisioner.lib.databases import pass_one_by_one
from provisioner.lib.refusals import InvalidRequest, TooMany
from provisioner.notify import webhooks
from provisioner.notify.models import (
    Webhook,
    WebhookDelivery,
    WebhookEvent,
    WebhookFormat,
    new_salt,
)
from provisioner.notify.permissions import can_change_webhook
from provisioner.notify.refusals import WebhookNotSigned, WebhookOff

MOST_WEBHOOKS = 20


def webhook_create(
    *,
    by: User,
    url: str,
    events: Sequence[str],
    template: Template | None = None,
    is_for_all: bool = False,
    format: str = WebhookFormat.CLONEYARD,
) -> Webhook:
    """Create a webhook. Show its `secret`, if any, now: it cannot be shown again.

    Raises: NotAllowed (`is_for_all` needs an administrator), InvalidRequest, TooMany.
    """
    permissions.require(permissions.can_be_told(by))
    if is_for_all:
        permissions.require(permissions.can_administer(by))
    if format not in WebhookFormat.values:
        raise InvalidRequest(f"There is no format “{format}”.")
    if is_for_all and template is not None:
        raise InvalidRequest("A webhook is for one template or for all, not both.")
    _check_url(url)
    with transaction.atomic():
        # Locked, so that two requests cannot both take the last place.
        User.objects.select_for_update(no_key=True).get(pk=by.pk)
        if Webhook.objects.filter(owner=by).count() >= MOST_WEBHOOKS:
            raise TooMany(
                most=MOST_WEBHOOKS, things="webhooks of yours", instead="Delete one."
            )
        webhook = Webhook.objects.create(
            owner=by,
            template=template,
            is_for_all=is_for_all,
            url=url,
            events=_checked(events),
            format=format,
        )
        _note(webhook, "webhook_made", "Created the webhook.", by=by)
    return webhook


def webhook_update(
    *,
    by: User,
    webhook: Webhook,
    url: str | None = None,
    events: Sequence[str] | None = None,
    is_enabled: bool | None = None,
) -> Webhook:
    """Change the given fields. Turning it on resets the count of failures.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(can_change_webhook(by, webhook))
    if url is not None:
        _check_url(url)
    with transaction.atomic():
        row = Webhook.objects.select_for_update(no_key=True).get(pk=webhook.pk)
        before = (row.url, row.events, row.is_enabled)
        row.url = row.url if url is None else url
        row.events = row.events if events is None else _checked(events)
        row.is_enabled = row.is_enabled if is_enabled is None else is_enabled
        after = (row.url, row.events, row.is_enabled)
        if is_enabled:
            row.disabled_reason, row.failing_since = "", None
        row.save()
        names = ("address", "events", "switch")
        changed = [
            name
            for name, old, new in zip(names, before, after, strict=True)
            if old != new
        ]
        if changed:
            _note(row, "webhook_changed", f"Changed {', '.join(changed)}.", by=by)
    return row


def webhook_renew_secret(*, by: User, webhook: Webhook) -> Webhook:
    """Replace the secret; queued messages are signed with the new one. Show it now.

    Raises: NotAllowed, WebhookNotSigned.
    """
    permissions.require(can_change_webhook(by, webhook))
    if not webhook.is_signed:
        raise WebhookNotSigned(format=webhook.get_format_display())
    with transaction.atomic():
        webhook.salt = new_salt()
        webhook.save(update_fields=["salt"])
        _note(webhook, "webhook_changed", "Replaced its secret.", by=by)
    return webhook


def webhook_delete(*, by: User, webhook: Webhook) -> None:
    """Delete a webhook with its deliveries.

    Raises: NotAllowed.
    """
    permissions.require(can_change_webhook(by, webhook))
    with transaction.atomic():
        _note(webhook, "webhook_deleted", "Deleted the webhook.", by=by)
        webhook.delete()


def webhook_test(*, by: User, webhook: Webhook) -> WebhookDelivery:
    """Send a test message once, even if the webhook is turned off.

    If a test message is already waiting, return that one.

    Raises: NotAllowed, WebhookOff.
    """
    permissions.require(can_change_webhook(by, webhook))
    _refuse_what_is_not_sent(
        WebhookDelivery(webhook=webhook, event=WebhookDelivery.TEST)
    )
    with transaction.atomic():
        waiting = _waiting(webhook, event=WebhookDelivery.TEST)
        at = clocks.database_now().isoformat()
        return waiting or webhooks.write_test(webhook, at=at)


def delivery_repeat(*, by: User, delivery: WebhookDelivery) -> WebhookDelivery:
    """Send a message once more under its id; if it is still waiting, return it.

    Raises: NotAllowed, WebhookOff.
    """
    permissions.require(can_change_webhook(by, delivery.webhook))
    _refuse_what_is_not_sent(delivery)
    with transaction.atomic():
        waiting = _waiting(delivery.webhook, message_id=delivery.message_id)
        return waiting or webhooks.write_again(delivery)


def _waiting(webhook: Webhook, **criteria: Any) -> WebhookDelivery | None:
    """Return the waiting message of this kind, and lock out others that write one."""
    pass_one_by_one("webhook_by_hand", webhook.pk)
    waiting = webhook.deliveries.filter(state=WebhookDelivery.State.WAITING)
    return waiting.filter(**criteria).first()


def _refuse_what_is_not_sent(delivery: WebhookDelivery) -> None:
    """Raises: WebhookOff."""
    if reason := delivery.why_not:
        raise WebhookOff(reason=reason)


def _checked(events: Sequence[str]) -> list[str]:
    unknown = sorted(set(events) - set(WebhookEvent.values))
    if unknown:
        raise InvalidRequest(f"There is no event “{unknown[0]}”.")
    if not events:
        raise InvalidRequest("Choose at least one event.")
    return [event for event in WebhookEvent.values if event in events]


def _check_url(url: str) -> None:
    """Refuse addresses that can never be reached.

    Host names are resolved when a message is sent.
    """
    try:
        target = read_url(url)
        address = literal_address(target)
        if address is not None:
            allowed = read_networks(settings.WEBHOOK_ALLOWED_NETWORKS)
            check_address(address, target=target, allowed=allowed)
    except AddressRefused as refusal:
        raise InvalidRequest(str(refusal)) from refusal


def _note(webhook: Webhook, kind: str, message: str, *, by: User) -> None:
    record_event(
        webhook,
        kind=kind,
        message=message,
        actor=by,
        data={"events": webhook.events, "host": webhook.host},
    )
