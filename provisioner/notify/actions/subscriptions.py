"""Subscriptions to mails about a template's failures and recoveries."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template
from provisioner.notify.models import Subscription


def template_subscribe(*, by: User, template: Template) -> Subscription:
    """Mail a person when a template fails or recovers. Safe to repeat.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_be_told(by))
    with transaction.atomic():
        row, is_new = Subscription.objects.get_or_create(template=template, user=by)
        if is_new:
            record_event(
                template,
                kind="template_subscribed",
                message="Subscribed to mails about its failures.",
                actor=by,
            )
    return row


def template_unsubscribe(*, by: User, template: Template) -> None:
    """Stop mailing a person about a template. Safe to repeat.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_be_told(by))
    with transaction.atomic():
        deleted, _ = Subscription.objects.filter(template=template, user=by).delete()
        if deleted:
            record_event(
                template,
                kind="template_unsubscribed",
                message="Unsubscribed from mails about its failures.",
                actor=by,
            )
