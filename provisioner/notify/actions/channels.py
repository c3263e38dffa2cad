"""Choose the channels of each kind of notification."""

from __future__ import annotations

from collections.abc import Mapping, Set

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.notify.channels import STAY, Channel, channels_by_topic
from provisioner.notify.models import NotificationChoice, Topic
from provisioner.notify.refusals import ChannelStaysOn


def choose_channels(
    *, by: User, topic: Topic, chosen: Mapping[Channel, bool]
) -> frozenset[Channel]:
    """Turn channels of a topic on or off; return those that are on now.

    Channels left out stay as they are. Safe to repeat.

    Raises: NotAllowed, ChannelStaysOn.
    """
    permissions.require(permissions.can_be_told(by))
    with transaction.atomic():
        # Locked, so that two requests cannot both write the first choice.
        User.objects.select_for_update(no_key=True).get(pk=by.pk)
        before = channels_by_topic(by)[topic]
        channels = frozenset(
            each for each in Channel if chosen.get(each, each in before)
        )
        if not STAY.get(topic, frozenset()) <= channels:
            raise ChannelStaysOn
        if channels == before:
            return before
        NotificationChoice.objects.update_or_create(
            person=by,
            topic=topic,
            defaults={
                "by_mail": Channel.MAIL in channels,
                "by_webhook": Channel.WEBHOOK in channels,
            },
        )
        record_event(
            by,
            kind="notifications_chosen",
            message=f"Notifications about “{topic.label}”: {_said(channels)}.",
            actor=by,
        )
    return channels


def _said(channels: Set[Channel]) -> str:
    return " and ".join(f"by {each}" for each in Channel if each in channels) or "none"
