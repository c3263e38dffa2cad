"""Sent notifications: mails about builds, and webhooks with their deliveries."""

from __future__ import annotations

import datetime as dt
import json

from provisioner.accounts.models import User
from provisioner.demo.company.events import Log
from provisioner.demo.company.operations import Ran
from provisioner.demo.company.people import People
from provisioner.demo.company.studio import Studio
from provisioner.demo.company.templates import Built
from provisioner.engine.models import Operation
from provisioner.notify.models import (
    Notification,
    Subscription,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)

DAY = dt.timedelta(days=1)
MAILS_KEPT, DELIVERIES_KEPT = 60 * DAY, 29 * DAY
HOSTS = (
    *("ci.studio.example", "chat.studio.example", "dashboards.studio.example"),
    *("jenkins.studio.example", "alerts.studio.example", "teamcity.studio.example"),
)
E = WebhookEvent
K = Notification.Kind


class Telling:
    """Makes mails and messages, most of which arrived."""

    def __init__(self, studio: Studio, *, people: People, log: Log) -> None:
        self._studio, self._people, self._log = studio, people, log

    def tell(self, templates: list[Built]) -> None:
        """Add subscriptions, and the notifications of the last weeks' builds."""
        webhooks = self._webhooks(templates)
        ended = []
        for built in templates:
            subscribers = self._subscribers(built)
            self._mail_of(built, subscribers)
            ended += [(ran.ended_at, built, ran) for ran in built.builds]
        lately = self._studio.now - DELIVERIES_KEPT
        ended = sorted(
            (each for each in ended if each[0] > lately), key=lambda each: each[0]
        )
        wanted = self._studio.size.deliveries
        for number in range(wanted if ended else 0):
            at, built, ran = ended[number * len(ended) // wanted]
            self._deliver(webhooks[number % len(webhooks)], built, ran, at=at)

    # --- mails

    def _subscribers(self, built: Built) -> list[User]:
        chance = self._studio.chance
        people = chance.sample(self._people.developers, k=chance.randrange(2, 6))
        for user in people:
            at = self._studio.calendar.ago(days=chance.uniform(40, 170))
            self._studio.rows.add(
                Subscription(template=built.template, user=user, created_at=at)
            )
            self._log.tell(
                built.template,
                "template_subscribed",
                "Subscribed to mails about its failures.",
                at=at,
                by=user,
            )
        return people

    def _mail_of(self, built: Built, subscribers: list[User]) -> None:
        """Add one mail for each failure, and one for its recovery."""
        told: list[User] = []
        since = self._studio.now - MAILS_KEPT
        for ran in built.builds:
            if ran.operation.state == Operation.State.FAILED and not told:
                others = self._studio.chance.sample(self._people.developers, k=2)
                told = list(dict.fromkeys([*subscribers, *others]))
                kind = K.TEMPLATE_FAILED
            elif ran.operation.state == Operation.State.SUCCEEDED and told:
                kind = K.TEMPLATE_RECOVERED
            else:
                continue
            if ran.ended_at > since:
                for user in told:
                    self._mail(built, ran, user, kind)
            if kind == K.TEMPLATE_RECOVERED:
                told = []

    def _mail(
        self, built: Built, ran: Ran, user: User, kind: Notification.Kind
    ) -> None:
        at = ran.ended_at
        self._studio.rows.add_later(
            Notification(
                template=built.template,
                operation=ran.operation,
                recipient=user,
                kind=kind,
                due_at=at,
                created_at=at,
                claimed_at=at + dt.timedelta(seconds=3),
                sent_at=at + dt.timedelta(seconds=4),
                sent_to=user.email,
                data={},
            )
        )

    # --- webhooks

    def _webhooks(self, templates: list[Built]) -> list[Webhook]:
        found = []
        for number in range(max(len(templates) // 2, 3)):
            owner = self._studio.chance.choice(self._people.developers)
            if number < 2:
                owner = (self._people.admin, self._people.alice)[number]
            found.append(
                self._webhook(number, owner, templates, is_for_all=number == 0)
            )
        return found

    def _webhook(
        self, number: int, owner: User, templates: list[Built], *, is_for_all: bool
    ) -> Webhook:
        at = self._studio.calendar.ago(days=self._studio.chance.uniform(32, 160))
        is_off, host = number == 2, HOSTS[number % len(HOSTS)]
        webhook = self._studio.rows.add(
            Webhook(
                owner=owner,
                template=None if is_for_all or number % 3 else templates[0].template,
                is_for_all=is_for_all,
                url=f"https://{host}/hooks/{self._studio.uuid().hex[:10]}",
                salt=self._studio.uuid().hex,
                events=[E.TEMPLATE_BUILT, E.TEMPLATE_FAILED, E.TEMPLATE_RECOVERED],
                is_enabled=not is_off,
                disabled_reason="No message was taken for 3 days. The last time: The "
                "connection was refused."
                if is_off
                else "",
                failing_since=self._studio.calendar.ago(days=3) if is_off else None,
                created_at=at,
            )
        )
        self._log.tell(
            webhook, "webhook_made", "Made the webhook.", at=at, by=webhook.owner
        )
        return webhook

    def _deliver(
        self, webhook: Webhook, built: Built, ran: Ran, *, at: dt.datetime
    ) -> None:
        chance = self._studio.chance
        has_failed = ran.operation.state == Operation.State.FAILED
        event = E.TEMPLATE_FAILED if has_failed else E.TEMPLATE_BUILT
        is_taken = webhook.is_enabled and chance.random() > 0.02
        message_id = self._studio.uuid()
        body = {
            "id": str(message_id),
            "event": str(event),
            "at": at.isoformat(),
            "message": ran.operation.status_message.partition("\n")[0] or "Ready.",
            "template": {"id": built.template.pk, "name": built.template.name},
            "build": {"operation": ran.operation.pk, **ran.operation.parameters},
        }
        tried_at = min(at + dt.timedelta(seconds=2), self._studio.now)
        self._studio.rows.add_later(
            WebhookDelivery(
                webhook=webhook,
                message_id=message_id,
                event=event,
                body=json.dumps(body),
                state="delivered" if is_taken else "given_up",
                attempts=1 if is_taken else 14,
                next_try_at=None,
                tried_at=tried_at,
                response_code=200 if is_taken else None,
                response_text="ok" if is_taken else "",
                error="" if is_taken else "The connection was refused.",
                duration_ms=chance.randrange(20, 900),
                created_at=at,
                ended_at=tried_at,
            )
        )
