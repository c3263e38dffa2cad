"""Mails about templates that fail and recover.

They go to subscribers, and to everyone whose change is in the failed build but not in
the last good snapshot. A template is failing from its first bad build until the next
good one. Each person gets one mail in that time, however many builds fail; people who
submit meanwhile get theirs with the next failure. Everyone told of the failure is told
of the recovery.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import Enum

from django.db.models import QuerySet, Value
from django.db.models.functions import Coalesce, Lower, NullIf

from provisioner.accounts.models import User
from provisioner.catalog import freshness
from provisioner.catalog.models import (
    Quality,
    Snapshot,
    SubmittedChange,
    Template,
    TemplateOperation,
)
from provisioner.engine.models import Operation, Step
from provisioner.engine.workflow import find_spec
from provisioner.notify.models import Notification, Subscription

LONGEST_NAME = 255
NEWER_SUCCEEDED = "A newer build succeeded."


class Outcome(Enum):
    GOOD = "good"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class Person:
    """An account, or a Perforce user without an account that has a mail address."""

    recipient_id: int | None = None
    p4_user: str = ""


def builds_of(template: Template) -> QuerySet[Operation]:
    return Operation.objects.filter(
        subject=template.subject_id, kind=TemplateOperation.BUILD
    )


def outcome_of(build: Operation) -> Outcome | None:
    """Return how a build ended; None if that says nothing about the template.

    That is so for builds that are running or canceled, or good but of a part of the
    view.
    """
    if build.state == Operation.State.FAILED:
        return Outcome.FAILED
    if build.state != Operation.State.SUCCEEDED:
        return None
    of_part = Snapshot.objects.filter(operation=build, is_complete=False)
    return None if of_part.exists() else Outcome.GOOD


def good_builds_of(template: Template) -> QuerySet[Operation]:
    """Return the builds whose outcome is good, newest first."""
    of_parts = Snapshot.objects.filter(
        template=template, operation__isnull=False, is_complete=False
    )
    return (
        builds_of(template)
        .filter(state=Operation.State.SUCCEEDED)
        .exclude(pk__in=of_parts.values("operation"))
        .order_by("-pk")
    )


def tell(build: Operation, *, now: dt.datetime) -> None:
    """Plan the mails about an ended build. Safe to repeat.

    Call it with the template's row locked, in the transaction that ends the build, and
    again later, because changes may be found after their build.
    """
    outcome = outcome_of(build)
    if outcome == Outcome.FAILED and not is_superseded(build):
        told = {_person_of(notice) for notice in failure_notifications(build)}
        for person in _concerned(build):
            if person not in told:
                _plan(build, Notification.Kind.TEMPLATE_FAILED, person, now=now)
    elif outcome == Outcome.GOOD:
        failures = failure_notifications(build)
        for notice in failures.filter(claimed_at__isnull=False):
            _plan(
                build, Notification.Kind.TEMPLATE_RECOVERED, _person_of(notice), now=now
            )
        failures.filter(claimed_at__isnull=True).update(
            voided_at=now, void_reason=NEWER_SUCCEEDED
        )


def is_superseded(build: Operation) -> bool:
    """Return whether a newer build of its template is good."""
    return good_builds_of(build.subject.template).filter(pk__gt=build.pk).exists()


def failed_before(build: Operation) -> bool:
    """Return whether the last build before this one with an outcome failed."""
    for earlier in (
        builds_of(build.subject.template).filter(pk__lt=build.pk).order_by("-pk")
    ):
        outcome = outcome_of(earlier)
        if outcome is not None:
            return outcome == Outcome.FAILED
    return False


def failure_notifications(build: Operation) -> QuerySet[Notification]:
    """Return the mails, sent and planned, about failures since the last good build."""
    good = good_builds_of(build.subject.template).filter(pk__lt=build.pk).first()
    return Notification.objects.filter(
        template=build.subject.template,
        kind=Notification.Kind.TEMPLATE_FAILED,
        operation_id__gt=good.pk if good else 0,
        operation_id__lte=build.pk,
        voided_at__isnull=True,
    )


def suspects_of(build: Operation) -> QuerySet[SubmittedChange]:
    """Return the changes in a failed build but not in the last good snapshot.

    Newest first; empty if no change can be the reason.
    """
    none = SubmittedChange.objects.none()
    template = build.subject.template
    failed = failed_step(build)
    spec = find_spec(failed) if failed else None
    if build.state == Operation.State.FAILED and (
        spec is None or spec.is_infrastructure
    ):
        return none
    base = last_good_snapshot(build)
    change = freshness.change_of(build)
    if base is None or not change:
        return none
    return SubmittedChange.objects.filter(
        templates=template,
        server=template.site.perforce_server_id,
        number__gt=base.change,
        number__lte=change,
    ).order_by("-number")


def failed_step(build: Operation) -> Step | None:
    """Return the failed step; the test step if only the outcome of the tests failed."""
    if failed_its_tests(build):
        return build.steps.get(has_rejected=True)
    return build.steps.filter(state=Step.State.FAILED).first()


def failed_its_tests(build: Operation) -> bool:
    """Return whether only the tests of a build failed, so that it has a snapshot."""
    return build.status_code == "test_failed"


def last_good_snapshot(build: Operation) -> Snapshot | None:
    """Return the newest whole snapshot before this build whose tests did not fail."""
    return (
        Snapshot.objects.complete()
        .filter(template=build.subject.template, created_at__lte=build.created_at)
        .exclude(quality=Quality.FAILED)
        .order_by("-created_at", "-id")
        .first()
    )


def _concerned(build: Operation) -> list[Person]:
    template = build.subject.template
    subscribers = Subscription.objects.filter(
        template=template, created_at__lte=build.ended_at or build.created_at
    )
    submitters = set(suspects_of(build).values_list("user", flat=True).distinct())
    people = {
        Person(recipient_id=pk) for pk in subscribers.values_list("user_id", flat=True)
    }
    accounts = _accounts_by_perforce_name(submitters)
    for name in submitters:
        if name in accounts:
            people.add(Person(recipient_id=accounts[name]))
        elif len(name) <= LONGEST_NAME:
            people.add(Person(p4_user=name))
    return sorted(people, key=lambda p: (p.recipient_id or 0, p.p4_user))


def _accounts_by_perforce_name(names: set[str]) -> dict[str, int]:
    """Return the accounts with a mail address, by their names in Perforce.

    A case-insensitive server records each name as it was typed, so an account with
    another spelling matches if none has exactly that one.
    """
    perforce_name = Coalesce(NullIf("p4_user", Value("")), "username")
    people = User.objects.filter(is_active=True).exclude(email="")
    named = people.annotate(folded=Lower(perforce_name))
    there = named.filter(folded__in=[name.lower() for name in names]).order_by("-pk")
    folded = {account.perforce_name.lower(): account.pk for account in there}
    exact = {account.perforce_name: account.pk for account in there}
    found = {name: exact.get(name) or folded.get(name.lower()) for name in names}
    return {name: pk for name, pk in found.items() if pk is not None}


def _person_of(notice: Notification) -> Person:
    return Person(recipient_id=notice.recipient_id, p4_user=notice.p4_user)


def _plan(
    build: Operation, kind: Notification.Kind, person: Person, *, now: dt.datetime
) -> None:
    Notification.objects.get_or_create(
        operation=build,
        kind=kind,
        recipient_id=person.recipient_id,
        p4_user=person.p4_user,
        defaults={"template": build.subject.template, "due_at": now},
    )


def why_not(notice: Notification) -> str:
    """Return why a mail about a build must not be sent any more, or "".

    Call it with the template's row locked.
    """
    build = notice.operation
    if build is None:
        return ""
    if notice.kind == Notification.Kind.TEMPLATE_FAILED:
        return NEWER_SUCCEEDED if is_superseded(build) else ""
    newer = builds_of(build.subject.template).filter(pk__gt=build.pk).order_by("pk")
    if any(outcome_of(each) == Outcome.FAILED for each in newer):
        return "A newer build failed."
    return ""
