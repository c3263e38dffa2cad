"""Choosing by which ways one is told of what."""

from __future__ import annotations

from collections.abc import Mapping, Set

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.notify.models import NotificationChoice, Topic
from provisioner.notify.refusals import WayStays
from provisioner.notify.ways import STAY, Way, ways_by_topic


def change_ways(
    *, by: User, topic: Topic, chosen: Mapping[Way, bool]
) -> frozenset[Way]:
    """Switch some ways of a topic on or off; return those by which one is now told.

    Raises: NotAllowed, WayStays.
    """
    with transaction.atomic():
        _one_choice_at_a_time(by)
        before = ways_by_topic(by)[topic]
        ways = frozenset(way for way in Way if chosen.get(way, way in before))
        choose_ways(by=by, topic=topic, ways=ways)
    return ways


def choose_ways(*, by: User, topic: Topic, ways: Set[Way]) -> None:
    """Have a person told of a topic by these ways alone. Safe to repeat.

    Raises: NotAllowed, WayStays.
    """
    permissions.require(permissions.can_be_told(by))
    if not STAY.get(topic, frozenset()) <= ways:
        raise WayStays
    with transaction.atomic():
        _one_choice_at_a_time(by)
        before = ways_by_topic(by)[topic]
        if before == ways:
            return
        NotificationChoice.objects.update_or_create(
            person=by,
            topic=topic,
            defaults={
                "by_mail": Way.MAIL in ways,
                "by_webhook": Way.WEBHOOK in ways,
            },
        )
        record_event(
            by,
            kind="notifications_chosen",
            message=f"Notifications about “{topic.label}”: {_said(ways)}.",
            actor=by,
        )


def _one_choice_at_a_time(by: User) -> None:
    """Lock the person: two requests could both write the first choice."""
    User.objects.select_for_update(no_key=True).get(pk=by.pk)


def _said(ways: Set[Way]) -> str:
    return " and ".join(f"by {way}" for way in Way if way in ways) or "none"
