"""Webhooks and their deliveries."""

from __future__ import annotations

import secrets
import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac

from provisioner.accounts.models import User
from provisioner.catalog.models import Template


def new_salt() -> str:
    return secrets.token_hex(16)


class WebhookEvent(models.TextChoices):
    """The events of webhooks. The values are part of the API and do not change."""

    TEMPLATE_BUILT = "template.built", "A template was built"
    TEMPLATE_FAILED = "template.failed", "A template's build or test failed"
    TEMPLATE_RECOVERED = "template.recovered", "A template recovered"
    SNAPSHOT_WITHDRAWN = "snapshot.withdrawn", "A snapshot was withdrawn"
    VOLUME_FILLS = "volume.fills", "A volume fills up"
    SERVER_TROUBLE = (
        "server.trouble",
        "A checkpoint, verification or drill of a Perforce server failed",
    )
    WORKSPACE_READY = "workspace.ready", "A workspace is ready"
    WORKSPACE_FAILED = "workspace.failed", "A workspace failed"
    WORKSPACE_TRASHED = "workspace.trashed", "A workspace was moved to the trash"
    WORKSPACE_RETIRED = "workspace.retired", "A workspace was purged"


class WebhookFormat(models.TextChoices):
    """The format of the posted messages."""

    CLONEYARD = "cloneyard", "Cloneyard (signed JSON)"
    SLACK = "slack", "Slack"
    TEAMS = "teams", "Microsoft Teams"


class Webhook(models.Model):
    """An address that events are posted to.

    It gets the events of all templates and of its owner's workspaces; with `template`,
    only those of that template; with `is_for_all` (administrators only), also those of
    everybody's workspaces. `failing_since` is the first failure after the last
    success. The format never changes, as queued messages are written in it. Messages in
    Cloneyard's format are signed; the secret is not stored but derived from `salt` and
    SECRET_KEY. The address is its owner's secret: those of Slack and Teams contain a
    token.
    """

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="webhooks")
    template = models.ForeignKey(
        Template,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="webhooks",
    )
    is_for_all = models.BooleanField(default=False)
    url = models.CharField(max_length=500)
    format = models.CharField(
        max_length=9, choices=WebhookFormat, default=WebhookFormat.CLONEYARD
    )
    salt = models.CharField(max_length=32, default=new_salt, editable=False)
    events = ArrayField(models.CharField(max_length=40, choices=WebhookEvent))
    is_enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=500, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.CheckConstraint(
                name="webhook_is_for_one_template_or_all",
                condition=Q(is_for_all=False) | Q(template__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """Its name in the audit log, with the host only: the address can be secret."""
        return f"{self.pk} to {self.host}"

    @property
    def host(self) -> str:
        return self.url.split("//", 1)[-1].split("/", 1)[0].split("?", 1)[0]

    def address_for(self, user: User) -> str:
        """Return the address as a person may see it: in full only for its owner."""
        if user.pk == self.owner_id:
            return self.url
        return f"{self.url.partition(':')[0]}://{self.host}/…"

    @property
    def is_signed(self) -> bool:
        return self.format == WebhookFormat.CLONEYARD

    @property
    def secret(self) -> str:
        """The secret that signs its messages, "" for formats without signature."""
        if not self.is_signed:
            return ""
        signed = salted_hmac("cloneyard.webhook", self.salt, algorithm="sha256")
        return f"whsec_{signed.hexdigest()}"


class WebhookDelivery(models.Model):
    """One message to one address, written in the transaction of its event.

    `message_id` identifies repeats to the receiver; resending by hand keeps it.
    Only a WAITING message has `next_try_at`. A manual test has the event TEST.
    """

    TEST = "test"

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        DELIVERED = "delivered", "Delivered"
        GIVEN_UP = "given_up", "Given up"
        VOID = "void", "Not sent"

    webhook = models.ForeignKey(
        Webhook, on_delete=models.CASCADE, related_name="deliveries"
    )
    message_id = models.UUIDField(default=uuid.uuid4)
    event = models.CharField(max_length=40)
    body = models.TextField(help_text="JSON, as it is sent and signed.")
    request_id = models.CharField(
        max_length=64,
        blank=True,
        editable=False,
        help_text="The request that it is a consequence of, as in the logs.",
    )
    traceparent = models.CharField(
        max_length=55,
        blank=True,
        editable=False,
        help_text="The span of its event, as W3C Trace Context names it.",
    )
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(db_default=Now(), null=True, blank=True)
    tried_at = models.DateTimeField(null=True, blank=True)
    response_code = models.PositiveSmallIntegerField(null=True, blank=True)
    response_text = models.CharField(max_length=500, blank=True)
    error = models.CharField(max_length=500, blank=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-pk",)
        verbose_name_plural = "webhook deliveries"
        constraints = (
            models.CheckConstraint(
                name="webhook_delivery_waits_for_a_time",
                condition=Q(state="waiting", next_try_at__isnull=False)
                | (~Q(state="waiting") & Q(next_try_at__isnull=True)),
            ),
        )
        indexes = (
            models.Index(
                fields=("next_try_at",),
                condition=Q(state="waiting"),
                name="webhook_delivery_waiting",
            ),
        )

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook}"

    @property
    def is_retried(self) -> bool:
        return self.state == self.State.WAITING and self.attempts > 0

    @property
    def result(self) -> str:
        """The error or status code of the last attempt, and how many there were."""
        result = self.error or str(self.response_code or "Not sent yet")
        return f"{result} ({self.attempts} attempts)" if self.attempts > 1 else result

    @property
    def why_not(self) -> str:
        """Why it is not sent, now or again; "" if it can be."""
        owner = self.webhook.owner
        if not owner.is_active:
            return f"The account {owner.username} is closed."
        if self.webhook.is_for_all and not owner.is_administrator:
            return f"{owner.username} is no longer an administrator."
        if not self.webhook.is_enabled and self.event != self.TEST:
            return "The webhook is turned off."
        return ""
