"""Messages to webhooks, as rows in an outbox.

A message is written in the transaction of its event and sent by sweeps/webhooks.py. It
describes that moment, however late it arrives.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from django.db.models import CharField, F, Func, Q, QuerySet, Value
from django.urls import reverse
from procrastinate.contrib.django import app

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog import freshness
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine.deferring import defer_once
from provisioner.engine.models import Operation
from provisioner.engine.queues import DELIVERIES
from provisioner.lib import request_ids, tracing
from provisioner.mirrors.models import Mirror
from provisioner.notify import chat, templates
from provisioner.notify.channels import Channel, channels_for
from provisioner.notify.mails import absolute, quoted_log_of
from provisioner.notify.models import (
    Webhook,
    WebhookDelivery,
    WebhookEvent,
    WebhookFormat,
)
from provisioner.sites.models import PerforceServer
from provisioner.workspaces.models import Workspace

DELIVER = "deliver_webhook"
# Retried messages must not delay new ones to the same webhook.
FIRST, AGAIN = 0, -10
CHANGES_NAMED = 50
OF_ONE_PERSON = 2

OF_WORKSPACES = {
    "workspace_ready": WebhookEvent.WORKSPACE_READY,
    "workspace_claimed": WebhookEvent.WORKSPACE_READY,
    "workspace_failed": WebhookEvent.WORKSPACE_FAILED,
    "workspace_trashed": WebhookEvent.WORKSPACE_TRASHED,
    "workspace_retired": WebhookEvent.WORKSPACE_RETIRED,
    "volume_filling": WebhookEvent.VOLUME_FILLS,
}


def tell_of_workspace(event: Event, workspace: Workspace) -> None:
    """Write the messages about an event of a workspace; none for pool members."""
    told = OF_WORKSPACES.get(event.kind)
    if told is None or workspace.is_pooled:
        return
    whose = Q(owner=workspace.owner_id) | Q(is_for_all=True, owner__is_staff=True)
    hooks = listening(told, whose, template__isnull=True)
    if hooks:
        said = {"message": event.message, "workspace": _workspace(workspace)}
        _write(hooks, told, at=event.at.isoformat(), said=said)


def tell_of_build(event: Event, build: Operation) -> None:
    """Write the messages about a build that has ended.

    A failure is reported once until the template recovers, and again if somebody new
    has submitted since: `suspects` lists the changes.
    """
    template = build.subject.template
    outcome = templates.outcome_of(build)
    failed_before = templates.failed_before(build)
    told: list[WebhookEvent] = []
    if build.state == Operation.State.SUCCEEDED:
        told.append(WebhookEvent.TEMPLATE_BUILT)
    if outcome == templates.Outcome.FAILED and (
        not failed_before or _has_new_suspects(build)
    ):
        told.append(WebhookEvent.TEMPLATE_FAILED)
    if outcome == templates.Outcome.GOOD and failed_before:
        told.append(WebhookEvent.TEMPLATE_RECOVERED)
    for kind in told:
        hooks = listening(kind, _concern(build.subject.template))
        if hooks:
            said = {"message": event.message, "template": _template(template)}
            said |= {"build": _build(build, outcome)}
            _write(hooks, kind, at=event.at.isoformat(), said=said)


def tell_of_template_volume(
    event: Event, template: Template, *, mirror: Mirror | None = None
) -> None:
    """Write the messages about a template's volume, or its mirror's, that fills up."""
    kind = WebhookEvent.VOLUME_FILLS
    hooks = listening(kind, _concern(template))
    if hooks:
        said = {"message": event.message, "template": _template(template)}
        if mirror is not None:
            said["mirror"] = _mirror(mirror)
        _write(hooks, kind, at=event.at.isoformat(), said=said)


def tell_of_withdrawal(event: Event, snapshot: Snapshot) -> None:
    """Write the messages about a withdrawn snapshot."""
    template = snapshot.template
    kind = WebhookEvent.SNAPSHOT_WITHDRAWN
    hooks = listening(kind, _concern(template))
    if hooks:
        said = {"message": event.message, "template": _template(template)}
        said["snapshot"] = {
            "id": snapshot.pk,
            "name": snapshot.name,
            "change": snapshot.change,
            "withdraw_reason": snapshot.withdraw_reason,
        }
        _write(hooks, kind, at=event.at.isoformat(), said=said)


def tell_of_server(
    server: PerforceServer, *, title: str, sentence: str, path: str, at: dt.datetime
) -> None:
    """Write the messages of administrators about a Perforce server."""
    kind = WebhookEvent.SERVER_TROUBLE
    hooks = listening(kind, owner__is_staff=True, template__isnull=True)
    if hooks:
        said = {"message": sentence, "server": _server(server, title, path)}
        _write(hooks, kind, at=at.isoformat(), said=said)


def webhooks_visible_to(user: User) -> QuerySet[Webhook]:
    """Return a person's own webhooks; everybody's to administrators.

    Search and sort them by `place`, the host: the address is its owner's secret.
    """
    place = _split(_split(F("url"), "/", 3), "?", 1)
    webhooks = Webhook.objects.select_related("owner", "template").annotate(place=place)
    if user.scope is not None:
        return webhooks.none()
    return webhooks if user.is_administrator else webhooks.filter(owner=user)


def _split(text: F | Func, at: str, part: int) -> Func:
    arguments = (text, Value(at), Value(part))
    return Func(*arguments, function="split_part", output_field=CharField())


def listening(event: WebhookEvent, *concerned: Q, **criteria: Any) -> list[Webhook]:
    """Return the webhooks of these that are on and want an event.

    An owner may have turned webhooks off for its topic. That does not affect webhooks
    about everybody's workspaces.
    """
    hooks = Webhook.objects.filter(
        *concerned,
        events__contains=[event.value],
        is_enabled=True,
        owner__is_active=True,
        **criteria,
    ).prefetch_related("owner__notification_choices")
    return [
        hook
        for hook in hooks
        if hook.is_for_all or Channel.WEBHOOK in channels_for(hook.owner, event)
    ]


def _concern(template: Template) -> Q:
    return Q(template__isnull=True) | Q(template=template)


def _has_new_suspects(build: Operation) -> bool:
    """Return whether somebody new has submitted since the build before this one."""
    before = templates.builds_of(build.subject.template).filter(pk__lt=build.pk)
    earlier = before.order_by("-pk").first()
    if earlier is None:
        return False
    known = set(templates.suspects_of(earlier).values_list("user", flat=True))
    return not set(templates.suspects_of(build).values_list("user", flat=True)) <= known


def write_test(webhook: Webhook, *, at: str) -> WebhookDelivery:
    """Write a test message."""
    said = {"message": "This is a test."}
    [delivery] = _write([webhook], WebhookDelivery.TEST, at=at, said=said)
    return delivery


def write_again(delivery: WebhookDelivery) -> WebhookDelivery:
    """Write the same message once more, under its id."""
    return _queued(
        WebhookDelivery.objects.create(
            webhook=delivery.webhook,
            message_id=delivery.message_id,
            event=delivery.event,
            body=delivery.body,
            request_id=request_ids.current(),
            traceparent=tracing.traceparent(),
        )
    )


def _write(
    hooks: list[Webhook], event: str, *, at: str, said: dict[str, Any]
) -> list[WebhookDelivery]:
    message_id = uuid.uuid4()
    said = {"id": str(message_id), "event": str(event), "at": at, **said}
    bodies = {
        format: chat.body_in(format, said)
        for format in {WebhookFormat(hook.format) for hook in hooks}
    }
    return [
        _queued(
            WebhookDelivery.objects.create(
                webhook=hook,
                message_id=message_id,
                event=str(event),
                body=bodies[WebhookFormat(hook.format)],
                request_id=request_ids.current(),
                traceparent=tracing.traceparent(),
            )
        )
        for hook in hooks
    ]


def _queued(delivery: WebhookDelivery) -> WebhookDelivery:
    defer_delivery(delivery)
    return delivery


def defer_delivery(delivery: WebhookDelivery) -> bool:
    """Queue the job of a message in the current transaction, unless one waits.

    Each webhook gets one message at a time, and a person's webhooks two in all: an
    address that does not answer delays nobody else's messages.
    """
    webhook = delivery.webhook
    is_first = delivery.attempts == 0
    job = app.configure_task(
        DELIVER,
        queue=DELIVERIES,
        lock=f"webhooks.{webhook.owner_id}.{webhook.pk % OF_ONE_PERSON}",
        queueing_lock=f"webhook_delivery.{delivery.pk}",
        schedule_at=None if is_first else delivery.next_try_at,
        priority=FIRST if is_first else AGAIN,
    )
    return defer_once(job, delivery_id=delivery.pk)


def _workspace(workspace: Workspace) -> dict[str, Any]:
    link = reverse("workspace-detail", args=[workspace.pk])
    return {
        "id": workspace.pk,
        "name": workspace.name,
        "owner": workspace.owner.get_username(),
        "template": workspace.template.name,
        "change": workspace.snapshot.change,
        "state": workspace.state,
        "path": str(workspace.path),
        "client": workspace.client_name,
        "url": absolute(link),
    }


def _template(template: Template) -> dict[str, Any]:
    return {
        "id": template.pk,
        "name": template.name,
        "site": template.site.name,
        "state": template.state,
        "url": absolute(reverse("template-detail", args=[template.pk])),
    }


def _server(server: PerforceServer, title: str, path: str) -> dict[str, Any]:
    return {
        "id": server.pk,
        "name": server.name,
        "title": title,
        "url": absolute(path),
    }


def _mirror(mirror: Mirror) -> dict[str, Any]:
    return {
        "id": mirror.pk,
        "name": mirror.name,
        "site": mirror.site.name,
        "state": mirror.state,
        "volume": mirror.volume_path,
        "url": absolute(reverse("mirror-detail", args=[mirror.pk])),
    }


def _build(build: Operation, outcome: templates.Outcome | None) -> dict[str, Any]:
    made = Snapshot.objects.filter(operation=build).first()
    is_bad = outcome == templates.Outcome.FAILED
    suspects = templates.suspects_of(build)[:CHANGES_NAMED] if is_bad else ()
    return {
        "operation": build.pk,
        "change": freshness.change_of(build) or None,
        "snapshot": made.name if made else None,
        "quality": made.quality if made else None,
        "status_code": build.status_code,
        "status_message": build.status_message,
        "suspects": [
            {"change": each.number, "user": each.user, "title": each.title}
            for each in suspects
        ],
        "log_tail": list(quoted_log_of(build).lines) if is_bad else [],
        "log_url": absolute(reverse("operation-log", args=[build.pk])),
    }
