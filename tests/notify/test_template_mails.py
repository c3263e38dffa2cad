"""Who gets mails about failures and recoveries of a template, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.states import set_template_state
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.notify.models import Notification, Subscription
from provisioner.notify.sweeps import mails as sweep
from tests.support.builds import build, fails, fails_its_tests, submitted, succeeds
from tests.support.clock import Clock
from tests.support.factories import SnapshotFactory, UserFactory
from tests.support.mail_server import BACKEND, Killed, Mailbox


@pytest.fixture(autouse=True)
def mailbox(settings: Settings, tmp_path: Path) -> Iterator[type[Mailbox]]:
    settings.EMAIL_BACKEND = BACKEND
    settings.PUBLIC_URL = "https://cloneyard.example.com"
    settings.LOG_DIR = tmp_path
    Mailbox.empty()
    yield Mailbox
    Mailbox.empty()


@pytest.fixture
def alice(db: None) -> User:
    return UserFactory.create(username="alice", email="alice@example.com")


@pytest.fixture
def bob(db: None) -> User:
    """Who has another name in Perforce."""
    return UserFactory.create(username="bob", p4_user="rsmith", email="bob@example.com")


@pytest.fixture
def good(clock: Clock, snapshot: Snapshot) -> Template:
    """A template whose newest snapshot, at change 100, is good."""
    Snapshot.objects.update(created_at=clock.now)
    clock.advance(hours=1)
    return snapshot.template


def told(clock: Clock) -> list[tuple[str, str]]:
    """Send what is due; return the new mails: to whom, and their first word."""
    clock.advance(minutes=1)
    seen = len(Mailbox.delivered)
    sweep.tell_late(now=clock.now)
    sweep.send_due(now=clock.now)
    return sorted(
        (message.to[0].partition("@")[0], str(message.subject))
        for _, message in Mailbox.delivered[seen:]
    )


def test_submitters_and_subscribers_hear_once_and_of_the_recovery(
    good: Template, alice: User, bob: User, admin: User, clock: Clock
) -> None:
    carol = UserFactory.create(username="carol", email="carol@example.com")
    UserFactory.create(username="dave", email="dave@example.com")
    Subscription.objects.create(template=good, user=carol)
    submitted(good, 101, "alice")
    submitted(good, 102, "rsmith")
    submitted(good, 103, "dave")  # not in the build

    fails(build(good, by=admin, change=102))

    failed = f"{good.name} could not be built at change 102"
    assert told(clock) == [("alice", failed), ("bob", failed), ("carol", failed)]
    assert told(clock) == []

    succeeds(build(good, by=admin, change=103))

    recovered = f"{good.name} recovered at change 103"
    assert told(clock) == [
        ("alice", recovered),
        ("bob", recovered),
        ("carol", recovered),
    ]
    assert told(clock) == []
    assert good.events.filter(kind="notification_sent").count() == 6

    succeeds(build(good, by=admin, change=104))
    assert told(clock) == []


def test_a_second_failure_in_a_row_is_mailed_only_to_those_who_are_new(
    good: Template, alice: User, bob: User, admin: User, clock: Clock
) -> None:
    submitted(good, 101, "alice")
    fails(build(good, by=admin, change=101))
    assert [who for who, _ in told(clock)] == ["alice"]

    fails(build(good, by=admin, change=101))
    assert told(clock) == []

    submitted(good, 102, "rsmith")
    fails(build(good, by=admin, change=102))
    assert [who for who, _ in told(clock)] == ["bob"]

    succeeds(build(good, by=admin, change=102))
    assert [who for who, _ in told(clock)] == ["alice", "bob"]

    submitted(good, 103, "alice")
    fails(build(good, by=admin, change=103))
    assert [who for who, _ in told(clock)] == ["alice"]


def test_a_failure_that_a_newer_build_fixed_sends_no_mail(
    good: Template, alice: User, admin: User, clock: Clock
) -> None:
    submitted(good, 101, "alice")
    fails(build(good, by=admin, change=101))
    succeeds(build(good, by=admin, change=101))

    assert told(clock) == []
    [notice] = Notification.objects.all()
    assert notice.void_reason == "A newer build succeeded."


def test_a_canceled_build_sends_no_mail(
    good: Template, alice: User, admin: User, clock: Clock
) -> None:
    submitted(good, 101, "alice")
    operation = build(good, by=admin, change=101)
    engine_states.end_operation(operation, Operation.State.CANCELED)
    set_template_state(good, Template.State.FAILED, code="canceled")

    assert told(clock) == []
    assert not Notification.objects.exists()


def test_failed_tests_are_a_failure_and_say_so(
    good: Template, alice: User, admin: User, clock: Clock
) -> None:
    Template.objects.filter(pk=good.pk).update(test_command="make test")
    submitted(good, 101, "alice")
    operation = build(good, by=admin, change=101)
    operation.steps.get(name="test").log_path.write_text("ok a\nFAIL b\n")
    fails_its_tests(operation)

    assert told(clock) == [("alice", f"{good.name} failed its tests at change 101")]
    text = Mailbox.delivered[-1][1].body
    assert "The test ended with exit code 1." in text
    assert "The log ends with:\n\n    ok a\n    FAIL b\n" in text
    assert "still get change 100" in text

    succeeds(build(good, by=admin, change=101), quality="tested")
    assert [who for who, _ in told(clock)] == ["alice"]


def test_a_refresh_of_a_part_mends_nothing(
    good: Template, alice: User, admin: User, clock: Clock
) -> None:
    submitted(good, 101, "alice")
    fails(build(good, by=admin, change=101))
    part = {"path": "//depot/main/a", "change": 101}
    succeeds(build(good, by=admin, change=101), parts=[part])

    assert [who for who, _ in told(clock)] == ["alice"]
    assert Notification.objects.get().kind == Notification.Kind.TEMPLATE_FAILED


def test_where_storage_failed_no_submitter_is_bothered(
    good: Template, alice: User, bob: User, admin: User, clock: Clock
) -> None:
    Subscription.objects.create(template=good, user=bob)
    submitted(good, 101, "alice")
    fails(build(good, by=admin, change=101), step="volume")

    assert [who for who, _ in told(clock)] == ["bob"]


def test_changes_found_after_the_build_are_mailed_later(
    good: Template, alice: User, admin: User, clock: Clock
) -> None:
    fails(build(good, by=admin, change=101))
    assert told(clock) == []

    submitted(good, 101, "alice")

    assert [who for who, _ in told(clock)] == ["alice"]


def test_who_subscribes_after_a_failure_hears_of_the_next_one(
    good: Template, alice: User, admin: User, clock: Clock
) -> None:
    fails(build(good, by=admin, change=101))
    clock.advance(minutes=5)
    Subscription.objects.create(template=good, user=alice)
    Subscription.objects.update(created_at=clock.now)
    assert told(clock) == []

    fails(build(good, by=admin, change=101))
    assert [who for who, _ in told(clock)] == ["alice"]


def test_the_mail_has_reason_changes_last_lines_and_links(
    good: Template, alice: User, admin: User, clock: Clock
) -> None:
    Subscription.objects.create(template=good, user=alice)
    Subscription.objects.update(created_at=clock.now)
    submitted(good, 101, "alice")
    operation = build(good, by=admin, change=101)
    lines = [f"line {number}" for number in range(100)] + ["error: \0 <b>&\xe9"]
    operation.steps.get(name="build").log_path.write_text("\n".join(lines))
    fails(operation)

    assert told(clock)
    text = Mailbox.delivered[-1][1].body
    assert "The build ended with exit code 2." in text
    assert "(change 100)" in text
    assert "101  alice  Work of alice" in text
    assert "line 99" in text
    assert "line 50" not in text
    assert "error: \ufffd <b>&é" in text
    assert f"https://cloneyard.example.com/operations/{operation.pk}/log/" in text
    assert "you submitted one of these changes, and because you subscribed" in text


def test_a_killed_sender_tells_nobody_twice(
    good: Template, alice: User, admin: User, clock: Clock
) -> None:
    submitted(good, 101, "alice")
    fails(build(good, by=admin, change=101))
    Mailbox.trouble = "killed after"
    with pytest.raises(Killed):
        told(clock)
    assert told(clock) == []
    assert len(Mailbox.delivered) == 1


def test_a_mail_that_the_server_refuses_is_tried_again(
    good: Template, alice: User, admin: User, clock: Clock
) -> None:
    submitted(good, 101, "alice")
    fails(build(good, by=admin, change=101))
    Mailbox.trouble = "refused"
    assert told(clock) == []
    clock.advance(minutes=2)
    assert [who for who, _ in told(clock)] == ["alice"]


def test_a_rolled_back_end_leaves_no_mail(
    good: Template, alice: User, admin: User, clock: Clock
) -> None:
    submitted(good, 101, "alice")
    operation = build(good, by=admin, change=101)
    with transaction.atomic():
        fails(operation)
        assert Notification.objects.count() == 1
        transaction.set_rollback(True)
    assert not Notification.objects.exists()


@pytest.mark.parametrize("state", ["closed", "no address"])
def test_who_cannot_be_reached_is_said_so(
    good: Template, alice: User, admin: User, clock: Clock, state: str
) -> None:
    Subscription.objects.create(template=good, user=alice)
    Subscription.objects.update(created_at=clock.now)
    fails(build(good, by=admin, change=101))
    if state == "closed":
        alice.is_active = False
    else:
        alice.email = ""
    alice.save()

    assert told(clock) == []
    assert "alice" in Notification.objects.get().void_reason


def test_two_people_with_one_address_get_one_mail(
    good: Template, alice: User, admin: User, clock: Clock
) -> None:
    UserFactory.create(username="bot", email="Alice@example.com")
    submitted(good, 101, "alice")
    submitted(good, 102, "bot")
    fails(build(good, by=admin, change=102))

    assert len(told(clock)) == 1


def test_a_name_in_another_case_is_the_account_s_unless_somebody_has_that_very_one(
    good: Template, bob: User, admin: User, clock: Clock
) -> None:
    """A server that ignores case records names as they were typed."""
    submitted(good, 101, "RSmith")
    fails(build(good, by=admin, change=101))
    assert [who for who, _ in told(clock)] == ["bob"]
    succeeds(build(good, by=admin, change=101))
    told(clock)

    UserFactory.create(username="RSmith", email="roberta@example.com")
    submitted(good, 102, "RSmith")
    fails(build(good, by=admin, change=102))
    assert [who for who, _ in told(clock)] == ["roberta"]


def test_an_open_look_up_is_not_due(good: Template, admin: User, clock: Clock) -> None:
    submitted(good, 101, "stranger")
    fails(build(good, by=admin, change=101))

    assert told(clock) == []
    [notice] = Notification.objects.all()
    assert (notice.p4_user, notice.voided_at) == ("stranger", None)

    Notification.objects.update(address="stranger@example.com")
    assert [who for who, _ in told(clock)] == ["stranger"]


def test_people_without_account_get_mail_where_perforce_says(
    lab_template: Template, admin: User
) -> None:
    """The address is looked up with the server, by the user's exact name."""
    good = lab_template
    SnapshotFactory.create(template=good, change=1)
    submitted(good, 2, "carol")
    submitted(good, 3, "nobody-there")
    fails(build(good, by=admin, change=3))

    sweep.look_up_addresses(good.site.perforce_server_id)

    found = dict(Notification.objects.values_list("p4_user", "address"))
    assert "@" in found["carol"]
    voided = Notification.objects.get(p4_user="nobody-there")
    assert "has no mail address" in voided.void_reason

    sweep.look_up_addresses(good.site.perforce_server_id)  # already done
    assert sweep.send_due(now=timezone.now()) == 1


def test_a_server_that_does_not_answer_is_asked_again(
    good: Template, admin: User
) -> None:
    submitted(good, 101, "stranger")
    fails(build(good, by=admin, change=101))

    sweep.look_up_addresses(good.site.perforce_server_id)  # nothing answers there

    notice = Notification.objects.get()
    assert (notice.address, notice.voided_at) == ("", None)
