"""Send messages to webhooks: each at least once, with retries for some hours.

Each message has a job. A message that was not accepted is retried after 15 s, 30 s,
1 min … 1 h, for about six hours, and not before its `Retry-After`. A message that Slack
or Teams rejects for good is not retried. A message whose worker was killed while
sending is sent again: receivers recognize it by its id.
"""

from __future__ import annotations

import datetime as dt

import structlog
from django.conf import settings
from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.audit_log.actions import record_event
from provisioner.engine.queues import DELIVERIES
from provisioner.gateways.webhooks.addresses import read_networks
from provisioner.gateways.webhooks.sending import Answer, post
from provisioner.lib import clocks, request_ids, tracing
from provisioner.notify import chat, webhooks
from provisioner.notify.models import Webhook, WebhookDelivery, WebhookFormat

log = structlog.get_logger(__name__)

FIRST_PAUSE = dt.timedelta(seconds=15)
LONGEST_PAUSE = dt.timedelta(hours=1)
MOST_ATTEMPTS = 14
# If nothing was accepted for this long, the next failed message turns the webhook off.
FAILS_FOR = dt.timedelta(days=3)
KEPT_FOR = dt.timedelta(days=30)
# A message overdue by this much has lost its job.
LOST_AFTER = dt.timedelta(minutes=2)
OVERDUE_AT_A_TIME = 500

Waiting = WebhookDelivery.State.WAITING


@app.task(name=webhooks.DELIVER, queue=DELIVERIES)
def deliver_webhook(delivery_id: int) -> None:
    """Try once to send a message."""
    deliver(delivery_id)


@app.periodic(cron="* * * * *")
@app.task(name="sweep_webhooks", queue="sweeps", queueing_lock="sweep_webhooks")
def sweep_webhooks(timestamp: int) -> None:
    """Requeue messages that lost their job, and delete old ones."""
    now = clocks.database_now()
    queue_lost(now=now)
    forget_old(now=now)


def deliver(delivery_id: int) -> None:
    """Try to send a message, unless it is settled, and record the result."""
    delivery = (
        WebhookDelivery.objects.select_related("webhook__owner")
        .filter(pk=delivery_id, state=Waiting)
        .first()
    )
    if delivery is None:
        return
    if reason := delivery.why_not:
        _end(delivery, WebhookDelivery.State.VOID, error=reason)
        return
    request_ids.follow(delivery.request_id, traceparent=delivery.traceparent)
    now = clocks.database_now()
    with tracing.span(
        "deliver webhook",
        kind=tracing.Kind.CLIENT,
        facts={
            "cloneyard.event": delivery.event,
            "cloneyard.attempt": delivery.attempts + 1,
            "server.address": delivery.webhook.host,
        },
        within=delivery.traceparent,
    ) as span:
        answer = post(
            delivery.webhook.url,
            body=delivery.body.encode(),
            secret=delivery.webhook.secret,
            event=delivery.event,
            message_id=str(delivery.message_id),
            timestamp=int(now.timestamp()),
            traceparent=tracing.traceparent(),
            allowed=read_networks(settings.WEBHOOK_ALLOWED_NETWORKS),
            ca_file=settings.WEBHOOK_CA_FILE,
        )
        span.note(
            {"http.response.status_code": answer.code or 0}, failed=not answer.is_taken
        )
    with transaction.atomic():
        webhook = (
            Webhook.objects.select_for_update(no_key=True)
            .filter(pk=delivery.webhook_id)
            .first()
        )
        if webhook is not None:  # nobody has deleted it meanwhile
            _note(delivery, webhook, answer, now=now)


def _note(
    delivery: WebhookDelivery, webhook: Webhook, answer: Answer, *, now: dt.datetime
) -> None:
    delivery.attempts += 1
    fields = {
        "attempts": delivery.attempts,
        "tried_at": now,
        "response_code": answer.code,
        "response_text": answer.text,
        "duration_ms": int(answer.seconds * 1000),
    }
    same = WebhookDelivery.objects.filter(pk=delivery.pk, state=Waiting)
    if not same.update(**fields):
        return  # somebody else has settled it
    keys = {"webhook_id": webhook.pk, "delivery_id": delivery.pk}
    if answer.is_taken:
        _end(delivery, WebhookDelivery.State.DELIVERED, error="")
        Webhook.objects.filter(pk=webhook.pk).update(failing_since=None)
        log.info("webhook_delivered", attempt=delivery.attempts, **keys)
        return
    log.warning("webhook_not_delivered", attempt=delivery.attempts, **keys)
    refusal = chat.refusal_in(WebhookFormat(webhook.format), answer)
    error = f"{answer.error} {refusal.sentence}" if refusal else answer.error
    # A manual test is not retried, and does not count for or against the webhook.
    if delivery.event == delivery.TEST:
        _end(delivery, WebhookDelivery.State.GIVEN_UP, error=error)
        return
    failing_since = webhook.failing_since or now
    Webhook.objects.filter(pk=webhook.pk).update(failing_since=failing_since)
    if refusal or delivery.attempts >= MOST_ATTEMPTS:
        _end(delivery, WebhookDelivery.State.GIVEN_UP, error=error)
        if refusal and refusal.turns_off and webhook.url == delivery.webhook.url:
            _turn_off(webhook, error)
        elif now - failing_since >= FAILS_FOR:
            reason = f"No message was accepted for {FAILS_FOR.days} days."
            _turn_off(webhook, f"{reason} Last error: {error}")
    else:
        pause = pause_after(delivery.attempts, wanted=answer.retry_after)
        delivery.next_try_at = now + pause
        same.update(next_try_at=delivery.next_try_at, error=error)
        webhooks.defer_delivery(delivery)


def pause_after(attempts: int, *, wanted: int | None = None) -> dt.timedelta:
    """Return the pause after a number of attempts: 15 s, 30 s, 1 min … 1 h.

    Longer if the receiver asks for it, up to an hour.
    """
    doubled: dt.timedelta = FIRST_PAUSE * 2 ** (attempts - 1)
    return min(max(doubled, dt.timedelta(seconds=wanted or 0)), LONGEST_PAUSE)


def _end(
    delivery: WebhookDelivery, state: WebhookDelivery.State, *, error: str
) -> None:
    WebhookDelivery.objects.filter(pk=delivery.pk, state=Waiting).update(
        state=state, error=error, next_try_at=None, ended_at=clocks.database_now()
    )


def _turn_off(webhook: Webhook, reason: str) -> None:
    Webhook.objects.filter(pk=webhook.pk).update(
        is_enabled=False, disabled_reason=reason[:500]
    )
    WebhookDelivery.objects.filter(webhook=webhook, state=Waiting).update(
        state=WebhookDelivery.State.VOID,
        error="The webhook was turned off.",
        next_try_at=None,
        ended_at=clocks.database_now(),
    )
    record_event(
        webhook,
        kind="webhook_disabled",
        message=f"The webhook was turned off. {reason}",
    )
    log.error("webhook_disabled", webhook_id=webhook.pk)


def queue_lost(*, now: dt.datetime) -> int:
    """Requeue overdue messages without a waiting job; return how many."""
    overdue = WebhookDelivery.objects.filter(
        state=Waiting, next_try_at__lt=now - LOST_AFTER
    ).select_related("webhook")
    return sum(
        webhooks.defer_delivery(delivery)
        for delivery in overdue.order_by("next_try_at")[:OVERDUE_AT_A_TIME]
    )


def forget_old(*, now: dt.datetime) -> None:
    """Delete messages that were settled over a month ago."""
    WebhookDelivery.objects.filter(ended_at__lt=now - KEPT_FOR).delete()
