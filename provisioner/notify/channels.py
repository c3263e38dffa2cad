"""The channels by which a person is notified of an event."""

from __future__ import annotations

from enum import StrEnum

from provisioner.accounts.models import User
from provisioner.notify.models import (
    Notification,
    NotificationChoice,
    Topic,
    WebhookEvent,
)


class Channel(StrEnum):
    MAIL = "mail"
    WEBHOOK = "webhook"
    """The person's own webhooks. Webhooks about everybody's workspaces are separate."""


K, E = Notification.Kind, WebhookEvent
EVENTS: dict[Topic, tuple[str, ...]] = {
    Topic.WORKSPACES: (
        *(K.WORKSPACE_READY, K.WORKSPACE_FAILED),
        *(E.WORKSPACE_READY, E.WORKSPACE_FAILED),
    ),
    Topic.LEASES: (
        *(K.LEASE_ENDS, K.TRASHED, K.RETIRE_FAILED, K.ABANDONED),
        *(E.WORKSPACE_TRASHED, E.WORKSPACE_RETIRED),
    ),
    Topic.SNAPSHOTS: (
        *(K.SNAPSHOT_WITHDRAWN, K.RESTORED_IN_PART),
        E.SNAPSHOT_WITHDRAWN,
    ),
    Topic.VOLUMES: (K.VOLUME_FILLS, E.VOLUME_FILLS),
    Topic.TEMPLATES: (
        *(K.TEMPLATE_FAILED, K.TEMPLATE_RECOVERED),
        *(E.TEMPLATE_BUILT, E.TEMPLATE_FAILED, E.TEMPLATE_RECOVERED),
    ),
    Topic.SERVERS: (K.SERVER_TROUBLE, E.SERVER_TROUBLE),
}
TOPICS = {event: topic for topic, events in EVENTS.items() for event in events}
DEFAULTS = {
    Topic.WORKSPACES: frozenset({Channel.WEBHOOK}),
    Topic.LEASES: frozenset(Channel),
    Topic.SNAPSHOTS: frozenset(Channel),
    Topic.VOLUMES: frozenset(Channel),
    Topic.TEMPLATES: frozenset(Channel),
    Topic.SERVERS: frozenset(Channel),
}
STAY = {Topic.LEASES: frozenset({Channel.MAIL})}
"""Channels that nobody can turn off: they protect work."""


def channels_for(person: User, event: str) -> frozenset[Channel]:
    """Return how a person is notified of an event, a kind of mail or webhook.

    One query, or none where `notification_choices` were prefetched.
    """
    topic = TOPICS[event]
    for choice in person.notification_choices.all():
        if choice.topic == topic:
            return channels_of(choice)
    return DEFAULTS[topic]


def channels_by_topic(person: User) -> dict[Topic, frozenset[Channel]]:
    """Return how a person is notified of each topic."""
    chosen = {
        Topic(choice.topic): channels_of(choice)
        for choice in person.notification_choices.all()
    }
    return {topic: chosen.get(topic, DEFAULTS[topic]) for topic in Topic}


def channels_of(choice: NotificationChoice) -> frozenset[Channel]:
    chosen = {Channel.MAIL: choice.by_mail, Channel.WEBHOOK: choice.by_webhook}
    channels = frozenset(channel for channel, is_chosen in chosen.items() if is_chosen)
    return channels | STAY.get(Topic(choice.topic), frozenset())


def why_no_mail_about(person: User, event: str) -> str:
    """Return a sentence if a person wants no mail about an event, or ""."""
    if Channel.MAIL in channels_for(person, event):
        return ""
    return f"{person} has turned off mails about “{TOPICS[event].label}”."
