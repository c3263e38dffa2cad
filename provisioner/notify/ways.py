"""By which ways a person is told of an event. Whoever sends something asks here."""

from __future__ import annotations

from enum import StrEnum

from provisioner.accounts.models import User
from provisioner.notify.models import (
    Notification,
    NotificationChoice,
    Topic,
    WebhookEvent,
)


class Way(StrEnum):
    MAIL = "mail"
    WEBHOOK = "webhook"
    """Those of the person, except for webhooks about everybody's workspaces."""


K, E = Notification.Kind, WebhookEvent
TOPICS: dict[str, Topic] = {
    **dict.fromkeys((K.WORKSPACE_READY, K.WORKSPACE_FAILED), Topic.WORKSPACES),
    **dict.fromkeys((E.WORKSPACE_READY, E.WORKSPACE_FAILED), Topic.WORKSPACES),
    **dict.fromkeys((K.LEASE_ENDS, K.TRASHED), Topic.LEASES),
    **dict.fromkeys((K.RETIRE_FAILED, K.ABANDONED), Topic.LEASES),
    **dict.fromkeys((E.WORKSPACE_TRASHED, E.WORKSPACE_RETIRED), Topic.LEASES),
    **dict.fromkeys((K.SNAPSHOT_WITHDRAWN, E.SNAPSHOT_WITHDRAWN), Topic.SNAPSHOTS),
    **dict.fromkeys((K.TEMPLATE_FAILED, K.TEMPLATE_RECOVERED), Topic.TEMPLATES),
    **dict.fromkeys((E.TEMPLATE_BUILT, E.TEMPLATE_FAILED), Topic.TEMPLATES),
    E.TEMPLATE_RECOVERED: Topic.TEMPLATES,
}
DEFAULTS = {
    Topic.WORKSPACES: frozenset({Way.WEBHOOK}),
    Topic.LEASES: frozenset(Way),
    Topic.SNAPSHOTS: frozenset(Way),
    Topic.TEMPLATES: frozenset(Way),
}
STAY = {Topic.LEASES: frozenset({Way.MAIL})}
"""Ways that nobody can turn off: they protect work."""


def ways_for(person: User, event: str) -> frozenset[Way]:
    """Return by which ways a person is told of an event: a kind of mail or webhook.

    One query, or none where `notification_choices` were prefetched.
    """
    topic = TOPICS[event]
    for choice in person.notification_choices.all():
        if choice.topic == topic:
            return ways_of(choice)
    return DEFAULTS[topic]


def ways_by_topic(person: User) -> dict[Topic, frozenset[Way]]:
    """Return by which ways a person is told of each topic."""
    chosen = {
        Topic(choice.topic): ways_of(choice)
        for choice in person.notification_choices.all()
    }
    return {topic: chosen.get(topic, DEFAULTS[topic]) for topic in Topic}


def ways_of(choice: NotificationChoice) -> frozenset[Way]:
    chosen = {Way.MAIL: choice.by_mail, Way.WEBHOOK: choice.by_webhook}
    ways = frozenset(way for way, is_chosen in chosen.items() if is_chosen)
    return ways | STAY.get(Topic(choice.topic), frozenset())


def why_no_mail_about(person: User, event: str) -> str:
    """Return that a person wants no mail about an event, as a sentence, or ""."""
    if Way.MAIL in ways_for(person, event):
        return ""
    return f"{person} has turned off mails about “{TOPICS[event].label}”."
