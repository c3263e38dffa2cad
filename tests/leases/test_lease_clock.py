"""Weeks of leases and mails in a moment: what happens when, and what never does."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Snapshot
from provisioner.engine import states as engine_states
from provisioner.engine import tasks
from provisioner.engine.models import Operation
from provisioner.leases import queries as lease_queries
from provisioner.leases.actions import policies
from provisioner.leases.actions.leases import (
    workspace_extend,
    workspace_keep,
    workspace_release,
)
from provisioner.leases.sweeps.leases import (
    purge_expired,
    retire_expired,
    tell_owners,
)
from provisioner.lib.refusals import ActionRefused
from provisioner.lib.times import exact
from provisioner.notify import workspaces
from provisioner.notify.mails import mail_of
from provisioner.notify.models import Notification
from provisioner.notify.sweeps.mails import send_due
from provisioner.workspaces.actions.retiring import workspace_restore, workspace_retire
from provisioner.workspaces.models import LEASED, Rescue, Workspace, WorkspaceOperation
from provisioner.workspaces.states import set_workspace_state
from tests.support.clock import BEGINS_AT, Clock
from tests.support.factories import SnapshotFactory, UserFactory
from tests.support.mail_server import BACKEND, Killed, Mailbox
from tests.support.requests import workspace_create

DAY = dt.timedelta(days=1)
HOUR = dt.timedelta(hours=1)
MINUTE = dt.timedelta(minutes=1)
DEVELOPMENT = Workspace.Purpose.DEVELOPMENT


@pytest.fixture(autouse=True)
def mailbox(settings: Settings) -> Iterator[type[Mailbox]]:
    settings.EMAIL_BACKEND = BACKEND
    settings.PUBLIC_URL = "https://cloneyard.example.com"
    Mailbox.empty()
    yield Mailbox
    Mailbox.empty()


@pytest.fixture
def alice(db: None) -> User:
    return UserFactory.create(username="alice", email="alice@example.com")


@pytest.fixture
def leased(clock: Clock, alice: User, snapshot: Snapshot) -> Workspace:
    """One of alice's, ready, with the built-in lease of thirty days."""
    return make_ready(alice, snapshot)


def make_ready(
    owner: User,
    snapshot: Snapshot,
    *,
    purpose: str = DEVELOPMENT,
    lease_seconds: int | None = None,
    name: str = "hers",
) -> Workspace:
    workspace = workspace_create(
        by=owner,
        template=snapshot.template,
        name=name,
        purpose=purpose,
        lease_seconds=lease_seconds,
    )
    end_running(workspace, Operation.State.SUCCEEDED)
    set_workspace_state(workspace, Workspace.State.READY)
    return workspace


def end_running(
    workspace: Workspace, state: Operation.State, *, message: str = ""
) -> Operation:
    """Let what is under way end as its last step would have it."""
    operation = workspace.operations.get(state=Operation.State.RUNNING)
    engine_states.end_operation(
        operation, state, code="" if not message else "broken", message=message
    )
    engine_states.skip_waiting_steps(operation)
    return operation


def work(workspace: Workspace, clock: Clock) -> None:
    """Do at once what workers would do with what was asked for."""
    workspace.refresh_from_db()
    State = Workspace.State
    if workspace.state == State.RETIRING:
        end_running(workspace, Operation.State.SUCCEEDED)
        policy = lease_queries.policy_for(workspace.template, workspace.purpose)
        until = clock.now + dt.timedelta(seconds=policy.trash_seconds)
        set_workspace_state(workspace, State.TRASHED, purge_at=until)
    elif workspace.state == State.PURGING:
        end_running(workspace, Operation.State.SUCCEEDED)
        set_workspace_state(workspace, State.RETIRED)
    elif workspace.state == State.RESTORING:
        operation = workspace.operations.get(state=Operation.State.RUNNING)
        with transaction.atomic():
            engine_states.skip_waiting_steps(operation)
            tasks.advance(operation)


def tick(clock: Clock) -> None:
    """Do what the sweeps do in a minute."""
    retire_expired(now=clock.now)
    purge_expired(now=clock.now)
    tell_owners(now=clock.now)
    send_due(now=clock.now)


def run(clock: Clock, *, days: float, every: dt.timedelta = DAY) -> None:
    """Let time pass while the sweeps run."""
    ends = clock.now + dt.timedelta(days=days)
    while clock.now < ends:
        clock.at(min(clock.now + every, ends))
        tick(clock)


def deadline(workspace: Workspace, clock: Clock) -> lease_queries.Deadline:
    workspace.refresh_from_db()
    policy = lease_queries.policy_for(workspace.template, workspace.purpose)
    return lease_queries.deadline_of(workspace, policy, clock.now)


def sent_at() -> list[dt.datetime]:
    return [at for at, _ in Mailbox.delivered]


def save_policy(by: User, **changes: object) -> policies.PolicyPreview:
    policy = {
        "default_seconds": 30 * lease_queries.DAY,
        "maximum_seconds": 90 * lease_queries.DAY,
        "trash_seconds": 72 * lease_queries.HOUR,
        "warn_seconds": [7 * lease_queries.DAY, lease_queries.DAY],
        **changes,
    }
    return policies.lease_policy_save(
        by=by,
        template=None,
        purpose=DEVELOPMENT,
        **policy,  # type: ignore[arg-type]  # each has its type, by name
    )


# --- the life of one lease


def test_a_lease_ends_after_thirty_days_with_two_mails_before(
    leased: Workspace, clock: Clock
) -> None:
    ends_at = BEGINS_AT + 30 * DAY
    assert deadline(leased, clock).ends_at == ends_at

    run(clock, days=29.9)

    assert sent_at() == [ends_at - 7 * DAY, ends_at - DAY]
    first, second = (message for _, message in Mailbox.delivered)
    assert first.to == ["alice@example.com"]
    assert first.subject == "The lease of hers ends in 7 days"
    assert second.subject == "The lease of hers ends in 1 day"
    assert "ends on Wed 01 Apr 2026, 09:00 UTC" in first.body
    assert "Sat 04 Apr 2026, 09:00 UTC" in first.body
    page = f"https://cloneyard.example.com/workspaces/{leased.pk}/"
    assert page in first.body
    leased.refresh_from_db()
    assert leased.state == Workspace.State.READY

    run(clock, days=0.1)

    leased.refresh_from_db()
    assert clock.now == ends_at
    assert leased.state == Workspace.State.RETIRING
    operation = leased.operations.first()
    assert operation is not None
    assert operation.parameters["unsubmitted"] == "rescue"
    assert operation.requested_by.username == "cloneyard.system"
    assert "Its lease ended on" in leased.status_message


@pytest.mark.parametrize(
    ("purpose", "is_promised"),
    [("development", True), ("ci-edit", True), ("ci", False), ("build", False)],
)
def test_a_rescue_is_promised_to_those_alone_who_can_submit(
    clock: Clock, alice: User, snapshot: Snapshot, purpose: str, is_promised: bool
) -> None:
    workspace = make_ready(alice, snapshot, purpose=purpose)
    notice = workspaces.say(
        workspace,
        Notification.Kind.LEASE_ENDS,
        due_at=clock.now,
        deadline_at=workspace.expires_at,
    )

    text = mail_of(notice, now=clock.now).text

    assert ("will be rescued" in text) == is_promised


def test_the_trash_is_announced_and_emptied_in_time(
    leased: Workspace, clock: Clock
) -> None:
    run(clock, days=30)
    work(leased, clock)
    trashed_at = clock.now
    Mailbox.empty()

    run(clock, days=2.9)

    assert Mailbox.subjects() == ["hers is in the trash"]
    _, mail = Mailbox.delivered[0]
    assert exact(trashed_at + 3 * DAY) in mail.body
    leased.refresh_from_db()
    assert leased.state == Workspace.State.TRASHED

    run(clock, days=0.2)

    leased.refresh_from_db()
    assert leased.state == Workspace.State.PURGING
    work(leased, clock)
    run(clock, days=5, every=DAY)
    assert len(Mailbox.delivered) == 1


def test_who_retires_it_gets_no_mail_about_it(
    leased: Workspace, clock: Clock, alice: User
) -> None:
    workspace_retire(by=alice, workspace=leased)
    work(leased, clock)

    run(clock, days=40, every=DAY)

    assert Mailbox.delivered == []


def test_an_owner_hears_that_somebody_retired_their_workspace(
    leased: Workspace, clock: Clock, admin: User
) -> None:
    workspace_retire(by=admin, workspace=leased, unsubmitted="rescue")
    work(leased, clock)

    run(clock, days=1)

    assert Mailbox.subjects() == ["hers is in the trash"]
    assert "by\nadmin" in Mailbox.delivered[0][1].body


@pytest.mark.parametrize("was_found", [True, False])
def test_an_owner_hears_that_somebody_discarded_their_work(
    leased: Workspace, clock: Clock, admin: User, was_found: bool
) -> None:
    nothing, discarded = "It had no unsubmitted work.", "was discarded, as admin chose"
    workspace_retire(by=admin, workspace=leased, unsubmitted="discard")
    if was_found:
        # Whoever chose it last had it done.
        for actor in (leased.owner, admin):
            record_event(leased, kind="work_discarded", message="3", actor=actor)
    work(leased, clock)

    run(clock, days=1)

    body = Mailbox.delivered[0][1].body
    assert (discarded in body, nothing in body) == (was_found, not was_found)
    assert "look at what was rescued" not in body


def test_the_mail_names_what_an_earlier_try_rescued(
    leased: Workspace, clock: Clock, admin: User
) -> None:
    workspace_retire(by=admin, workspace=leased, unsubmitted="rescue")
    Rescue.objects.create(
        workspace=leased,
        operation=leased.operations.get(kind=WorkspaceOperation.RETIRE),
        shelves=[{"change": 4711, "was": "default", "files": ["//depot/a"]}],
        has_work=True,
        is_complete=True,
    )
    end_running(leased, Operation.State.FAILED)
    failed = Workspace.State.FAILED
    set_workspace_state(leased, failed, code="x", message="It failed.")
    workspace_retire(by=admin, workspace=leased, unsubmitted="rescue")
    work(leased, clock)

    run(clock, days=1)

    assert "shelved change 4711, 1 file\n" in Mailbox.delivered[0][1].body


def test_machines_get_no_mail_and_no_trash(
    clock: Clock, ci: User, snapshot: Snapshot
) -> None:
    User.objects.filter(pk=ci.pk).update(email="ci@example.com")
    workspace = make_ready(ci, snapshot, purpose=Workspace.Purpose.BUILD)

    run(clock, days=1, every=HOUR)

    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.RETIRING
    work(workspace, clock)
    tick(clock)
    work(workspace, clock)
    run(clock, days=3)
    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.RETIRED
    assert Mailbox.delivered == []


def test_a_short_lease_is_not_announced_as_if_it_had_been_long(
    clock: Clock, alice: User, snapshot: Snapshot
) -> None:
    workspace = make_ready(alice, snapshot, lease_seconds=2 * lease_queries.HOUR)

    run(clock, days=2 / 24, every=10 * MINUTE)

    assert Mailbox.delivered == []
    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.RETIRING


# --- extensions


def test_an_extension_in_the_last_second_wins(
    leased: Workspace, clock: Clock, alice: User
) -> None:
    run(clock, days=29.9)
    Mailbox.empty()
    clock.at(BEGINS_AT + 30 * DAY - dt.timedelta(seconds=1))

    workspace_extend(by=alice, workspace=leased)
    run(clock, days=1, every=2 * HOUR)

    leased.refresh_from_db()
    assert leased.state == Workspace.State.READY
    assert Mailbox.delivered == []
    assert deadline(leased, clock).ends_at == (
        BEGINS_AT + 60 * DAY - dt.timedelta(seconds=1)
    )


def test_an_extension_after_the_last_second_wins_until_the_sweep_comes(
    leased: Workspace, clock: Clock, alice: User
) -> None:
    run(clock, days=29.9)
    clock.at(BEGINS_AT + 30 * DAY + dt.timedelta(seconds=30))
    assert deadline(leased, clock).is_over

    workspace_extend(by=alice, workspace=leased, seconds=lease_queries.DAY * 3)
    tick(clock)

    leased.refresh_from_db()
    assert leased.state == Workspace.State.READY


def test_a_moved_deadline_has_mails_of_its_own(
    leased: Workspace, clock: Clock, alice: User
) -> None:
    run(clock, days=24)
    workspace_extend(by=alice, workspace=leased)
    ends_at = BEGINS_AT + 54 * DAY

    run(clock, days=29)

    assert sent_at() == [BEGINS_AT + 23 * DAY, ends_at - 7 * DAY, ends_at - DAY]


def test_a_mail_that_is_due_is_not_sent_once_the_lease_is_extended(
    leased: Workspace, clock: Clock, alice: User
) -> None:
    clock.at(BEGINS_AT + 23 * DAY)

    workspace_extend(by=alice, workspace=leased)
    send_due(now=clock.now)

    assert Mailbox.delivered == []
    notice = leased.notices.get(
        deadline_at=BEGINS_AT + 30 * DAY, seconds_before=7 * lease_queries.DAY
    )
    assert notice.voided_at is not None


def test_no_mail_goes_out_for_what_is_gone(
    leased: Workspace, clock: Clock, alice: User
) -> None:
    clock.at(BEGINS_AT + 23 * DAY)
    workspace_retire(by=alice, workspace=leased)

    send_due(now=clock.now)
    work(leased, clock)
    send_due(now=clock.advance(days=6))

    assert Mailbox.delivered == []
    voided = leased.notices.exclude(void_reason="")
    assert {notice.void_reason for notice in voided} == {
        "The workspace is being retired.",
        "The workspace is in the trash.",
    }


def test_who_keeps_it_hears_nothing_until_it_is_released(
    leased: Workspace, clock: Clock, admin: User
) -> None:
    workspace_keep(by=admin, workspace=leased, reason="The trade fair")
    run(clock, days=100, every=DAY)
    assert Mailbox.delivered == []
    assert deadline(leased, clock).kept_because == "The trade fair"

    workspace_release(by=admin, workspace=leased)
    released_at = clock.now
    run(clock, days=29.9)

    assert sent_at() == [released_at + 23 * DAY, released_at + 29 * DAY]


def test_the_same_deadline_again_gets_the_mails_that_were_not_sent(
    leased: Workspace, clock: Clock, admin: User
) -> None:
    clock.at(BEGINS_AT + 20 * DAY)
    workspace_keep(by=admin, workspace=leased, reason="For a day")
    workspace_release(by=admin, workspace=leased)
    Workspace.objects.filter(pk=leased.pk).update(expires_at=BEGINS_AT + 22 * DAY)
    workspace_extend(by=admin, workspace=leased, until=BEGINS_AT + 30 * DAY)

    run(clock, days=9.5)

    assert sent_at() == [BEGINS_AT + 23 * DAY, BEGINS_AT + 29 * DAY]


# --- sweeps that were down, and crashes


def test_mails_missed_while_nothing_ran_become_one(
    leased: Workspace, clock: Clock
) -> None:
    clock.at(BEGINS_AT + 29 * DAY + 6 * HOUR)

    tick(clock)
    tick(clock)

    assert Mailbox.subjects() == ["The lease of hers ends in 18 hours"]


def test_nobody_loses_a_workspace_because_we_were_down(
    leased: Workspace, clock: Clock
) -> None:
    clock.at(BEGINS_AT + 33 * DAY)

    tick(clock)

    leased.refresh_from_db()
    assert leased.state == Workspace.State.READY
    assert Mailbox.subjects() == ["The lease of hers ends in 1 day"]
    assert exact(clock.now + DAY) in Mailbox.delivered[0][1].body
    assert leased.events.filter(kind="lease_postponed").count() == 1

    run(clock, days=1)

    leased.refresh_from_db()
    assert leased.state == Workspace.State.RETIRING
    assert len(Mailbox.delivered) == 1


def test_the_sender_alone_does_not_announce_what_is_past(
    leased: Workspace, clock: Clock
) -> None:
    clock.at(BEGINS_AT + 33 * DAY)

    send_due(now=clock.now)

    assert Mailbox.delivered == []


def test_who_was_warned_once_is_not_given_more_time(
    leased: Workspace, clock: Clock
) -> None:
    run(clock, days=24)
    clock.at(BEGINS_AT + 31 * DAY)

    tick(clock)

    leased.refresh_from_db()
    assert leased.state == Workspace.State.RETIRING
    assert len(Mailbox.delivered) == 1


@pytest.mark.parametrize(
    ("trouble", "mails"), [("killed before", 0), ("killed after", 1)]
)
def test_a_sender_that_is_killed_never_sends_twice(
    leased: Workspace, clock: Clock, trouble: str, mails: int
) -> None:
    clock.at(BEGINS_AT + 23 * DAY)
    Mailbox.trouble = trouble
    with pytest.raises(Killed):
        send_due(now=clock.now)

    run(clock, days=1)

    assert len(Mailbox.delivered) == mails
    run(clock, days=5.5)
    assert sent_at()[mails:] == [BEGINS_AT + 29 * DAY], "the next one comes"


def test_a_connection_that_breaks_after_the_mail_is_no_reason_to_repeat_it(
    leased: Workspace, clock: Clock
) -> None:
    Mailbox.trouble = "connection lost after"

    run(clock, days=25)

    assert len(Mailbox.delivered) == 1


@pytest.mark.parametrize("trouble", ["refused", "unreachable"])
def test_what_the_server_did_not_take_is_tried_again(
    leased: Workspace, clock: Clock, trouble: str
) -> None:
    clock.at(BEGINS_AT + 23 * DAY)
    Mailbox.trouble = trouble
    send_due(now=clock.now)
    assert Mailbox.delivered == []
    Mailbox.trouble = ""

    send_due(now=clock.advance(seconds=30))
    assert Mailbox.delivered == [], "not before its pause is over"
    send_due(now=clock.advance(seconds=30))

    assert len(Mailbox.delivered) == 1
    send_due(now=clock.advance(hours=1))
    assert len(Mailbox.delivered) == 1


def test_a_mail_server_that_never_answers_does_not_keep_workspaces_for_ever(
    leased: Workspace, clock: Clock
) -> None:
    Mailbox.trouble = "unreachable"

    run(clock, days=32)

    leased.refresh_from_db()
    assert leased.state == Workspace.State.RETIRING
    reasons = set(leased.notices.values_list("void_reason", flat=True))
    assert "The mail server did not accept it." in reasons


def test_without_an_address_there_is_nothing_to_wait_for(
    leased: Workspace, clock: Clock, alice: User
) -> None:
    User.objects.filter(pk=alice.pk).update(email="")

    run(clock, days=30)

    leased.refresh_from_db()
    assert leased.state == Workspace.State.RETIRING
    assert leased.notices.filter(void_reason__contains="no mail address").exists()


def test_without_a_mail_server_nothing_is_said_to_be_sent(
    leased: Workspace, clock: Clock, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"

    run(clock, days=30)

    leased.refresh_from_db()
    assert leased.state == Workspace.State.RETIRING
    assert not leased.notices.filter(sent_at__isnull=False).exists()
    assert not leased.events.filter(kind="notification_sent").exists()


# --- retirements that do not work


@pytest.mark.integration
def test_a_retirement_that_fails_is_tried_again_with_pauses_and_one_mail(
    leased: Workspace, clock: Clock
) -> None:
    run(clock, days=30)
    Mailbox.empty()

    for _ in range(2 * 24 * 2):
        leased.refresh_from_db()
        if leased.state == Workspace.State.RETIRING:
            end_running(leased, Operation.State.REFUSED, message="Not comparable.")
            set_workspace_state(leased, Workspace.State.READY)
        tick(clock)
        clock.advance(minutes=30)

    attempts = leased.operations.filter(kind=WorkspaceOperation.RETIRE).count()
    assert 4 <= attempts <= 7
    assert Mailbox.subjects() == ["hers could not be retired"]
    assert "Not comparable." in Mailbox.delivered[0][1].body


def test_what_was_brought_back_has_a_lease_again(
    leased: Workspace, clock: Clock, alice: User
) -> None:
    run(clock, days=30)
    work(leased, clock)
    clock.advance(days=1)
    workspace_restore(by=alice, workspace=leased)
    work(leased, clock)

    tick(clock)

    leased.refresh_from_db()
    assert leased.state == Workspace.State.READY
    assert leased.expires_at == clock.now + 30 * DAY


def test_what_a_token_got_and_brought_back_has_a_lease_as_long_as_the_token_may_have(
    alice: User, snapshot: Snapshot, clock: Clock
) -> None:
    alice.token, _ = token_create(by=alice, max_lease_seconds=lease_queries.HOUR)
    workspace = make_ready(alice, snapshot)
    clock.advance(hours=1)
    tick(clock)
    work(workspace, clock)
    clock.advance(hours=1)
    workspace_restore(by=alice, workspace=workspace)
    work(workspace, clock)

    tick(clock)

    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.READY
    assert workspace.expires_at == clock.now + HOUR


def test_what_was_brought_back_is_warned_as_the_policy_is_by_then(
    leased: Workspace, clock: Clock, alice: User, admin: User
) -> None:
    run(clock, days=25, every=5 * DAY)
    Mailbox.empty()
    workspace_retire(by=alice, workspace=leased)
    work(leased, clock)
    save_policy(admin, warn_seconds=[2 * lease_queries.DAY])
    workspace_restore(by=alice, workspace=leased)
    work(leased, clock)
    ends_at = deadline(leased, clock).ends_at
    assert ends_at is not None

    run(clock, days=4.9)

    assert sent_at() == [ends_at - 2 * DAY]


def test_a_trash_that_could_not_be_emptied_is_tried_again(
    leased: Workspace, clock: Clock, alice: User
) -> None:
    workspace_retire(by=alice, workspace=leased)
    work(leased, clock)
    run(clock, days=3)
    leased.refresh_from_db()
    assert leased.state == Workspace.State.PURGING
    end_running(leased, Operation.State.FAILED, message="Busy.")
    set_workspace_state(leased, Workspace.State.FAILED, code="busy")

    run(clock, days=0.5 / 24, every=5 * MINUTE)
    leased.refresh_from_db()
    assert leased.state == Workspace.State.FAILED, "not at once"
    run(clock, days=1 / 24, every=5 * MINUTE)

    leased.refresh_from_db()
    assert leased.state == Workspace.State.PURGING


# --- policies


def test_a_shorter_maximum_pulls_deadlines_in_and_warns_first(
    leased: Workspace, clock: Clock, admin: User, alice: User
) -> None:
    workspace_extend(by=alice, workspace=leased, seconds=90 * lease_queries.DAY)
    clock.advance(days=1)

    preview = save_policy(
        admin,
        default_seconds=2 * lease_queries.DAY,
        maximum_seconds=3 * lease_queries.DAY,
    )

    assert preview.moving == 1
    assert deadline(leased, clock).ends_at == clock.now + 7 * DAY
    began_at = clock.now
    run(clock, days=6.9, every=6 * HOUR)
    assert sent_at() == [began_at + 6 * HOUR, began_at + 6 * DAY]


def test_other_moments_count_for_leases_that_run(
    leased: Workspace, clock: Clock, admin: User
) -> None:
    save_policy(admin, warn_seconds=[3 * lease_queries.DAY, 2 * lease_queries.HOUR])

    run(clock, days=29, every=DAY)
    run(clock, days=1, every=HOUR)

    ends_at = BEGINS_AT + 30 * DAY
    assert sent_at() == [ends_at - 3 * DAY, ends_at - 2 * HOUR]


# --- whatever happens, in whatever order


@dataclass
class Expected:
    """What an observer who only knows the rules expects of one workspace."""

    ends_at: dt.datetime | None
    moments: set[int]
    said: set[int]

    def set_end(
        self, ends_at: dt.datetime | None, *, warn: tuple[int, ...], now: dt.datetime
    ) -> None:
        if ends_at != self.ends_at:
            self.moments, self.said = set(), set()
        self.ends_at = ends_at
        self.replan(warn, now=now)

    def replan(self, warn: tuple[int, ...], *, now: dt.datetime) -> None:
        if self.ends_at is None:
            self.moments = set()
            return
        overdue = {m for m in self.moments if self.at(m) <= now}
        ahead = {m for m in warn if self.at(m) >= now}
        self.moments = overdue | ahead

    def at(self, moment: int) -> dt.datetime:
        assert self.ends_at is not None
        return self.ends_at - dt.timedelta(seconds=moment)

    def due(self, now: dt.datetime) -> int | None:
        """Return the moment about which a mail has to go out now, if any."""
        if self.ends_at is None or now >= self.ends_at:
            return None
        due = [m for m in self.moments if self.at(m) <= now]
        newest = min(due, default=None)
        return None if newest in self.said else newest


WARNINGS = (
    (7 * lease_queries.DAY, lease_queries.DAY),
    (3 * lease_queries.DAY,),
    (lease_queries.HOUR,),
    (),
)
STEPS = st.one_of(
    st.tuples(st.just("advance"), st.integers(1, 20 * 24 * 60)),
    st.tuples(st.just("advance"), st.integers(1, 180)),
    st.tuples(st.just("extend"), st.sampled_from([1, 24, 20 * 24, 60 * 24, 90 * 24])),
    st.tuples(st.just("keep"), st.none()),
    st.tuples(st.just("release"), st.none()),
    st.tuples(st.just("retire"), st.none()),
    st.tuples(st.just("restore"), st.none()),
    st.tuples(st.just("policy"), st.sampled_from(WARNINGS)),
    st.tuples(st.just("maximum"), st.sampled_from([2, 10, 45, 90])),
    st.tuples(st.just("trouble"), st.sampled_from(["killed before", "killed after"])),
    st.tuples(st.just("to the end"), st.integers(-3, 3)),
    st.tuples(st.just("another"), st.sampled_from([2, 24, 5 * 24, 8 * 24, 40 * 24])),
)


class World:
    """One workspace at a time, its owner and an administrator, and the sweeps."""

    def __init__(self, clock: Clock) -> None:
        clock.at(BEGINS_AT)
        Mailbox.empty()
        self.clock = clock
        self.owner = UserFactory.create(username="walter", email="walter@example.com")
        self.admin = UserFactory.create(username="wanda", is_staff=True)
        self.warn: tuple[int, ...] = (7 * lease_queries.DAY, lease_queries.DAY)
        self.maximum_days = 90
        self.snapshot = SnapshotFactory.create()
        self.count = 0
        self._begin(30 * 24)

    def _begin(self, hours: int) -> None:
        self.count += 1
        self.workspace = make_ready(
            self.owner,
            self.snapshot,
            lease_seconds=min(hours, self.maximum_days * 24) * lease_queries.HOUR,
            name=f"w{self.count}",
        )
        self.expected = Expected(None, set(), set())
        self.expected.set_end(
            self.workspace.expires_at, warn=self.warn, now=self.clock.now
        )

    def _another(self, hours: int) -> None:
        """Put this one away, and go on with another."""
        if self.workspace.state in LEASED:
            workspace_retire(by=self.owner, workspace=self.workspace)
            work(self.workspace, self.clock)
        self._begin(hours)

    def do(self, step: str, value: object) -> None:
        """Let one thing happen, and check what it may not have done."""
        self.workspace.refresh_from_db()
        with contextlib.suppress(ActionRefused):
            getattr(self, f"_{step.replace(' ', '_')}")(value)
        self.tick()

    def _advance(self, minutes: int) -> None:
        self.clock.advance(minutes=minutes)

    def _to_the_end(self, seconds: int) -> None:
        if self.workspace.expires_at is not None:
            moment = self.workspace.expires_at + dt.timedelta(seconds=seconds)
            self.clock.at(max(self.clock.now, moment))

    def _extend(self, hours: int) -> None:
        now = self.clock.now
        extended = workspace_extend(
            by=self.owner, workspace=self.workspace, seconds=hours * lease_queries.HOUR
        )
        assert extended.expires_at == now + dt.timedelta(hours=hours)
        self.expected.set_end(extended.expires_at, warn=self.warn, now=now)

    def _keep(self, _: object) -> None:
        workspace_keep(by=self.admin, workspace=self.workspace, reason="Why not")
        self.expected.set_end(None, warn=self.warn, now=self.clock.now)

    def _release(self, _: object) -> None:
        released = workspace_release(by=self.owner, workspace=self.workspace)
        self.expected.set_end(released.expires_at, warn=self.warn, now=self.clock.now)

    def _retire(self, _: object) -> None:
        workspace_retire(by=self.owner, workspace=self.workspace)

    def _restore(self, _: object) -> None:
        workspace_restore(by=self.owner, workspace=self.workspace)

    def _policy(self, warn: tuple[int, ...]) -> None:
        self.warn = warn
        self._save()

    def _maximum(self, days: int) -> None:
        self.maximum_days = days
        self._save()

    def _save(self) -> None:
        before, now = self.workspace.expires_at, self.clock.now
        save_policy(
            self.admin,
            default_seconds=min(30, self.maximum_days) * lease_queries.DAY,
            maximum_seconds=self.maximum_days * lease_queries.DAY,
            warn_seconds=self.warn,
        )
        self.workspace.refresh_from_db()
        after = self.workspace.expires_at
        if before is not None and self.workspace.state in LEASED:
            assert after is not None
            earliest = now + dt.timedelta(seconds=max(self.warn, default=0))
            assert after == before or earliest <= after < before
        if self.workspace.state in LEASED:
            self.expected.set_end(after, warn=self.warn, now=now)

    def _trouble(self, trouble: str) -> None:
        Mailbox.trouble = trouble

    def tick(self) -> None:
        """Let the sweeps look, and hold what they do against the rules."""
        now = self.clock.now
        was = Workspace.objects.get(pk=self.workspace.pk)
        if was.state == Workspace.State.RETIRED:
            self._begin(30 * 24)
            was = self.workspace
        retired = retire_expired(now=now)
        is_leased = was.state in LEASED
        self._check_end(was, retired=bool(retired))
        purge_expired(now=now)
        work(self.workspace, self.clock)
        if was.state == Workspace.State.RESTORING:
            self.expected.replan(self.warn, now=now)
        tell_owners(now=now)
        due = self.expected.due(now) if is_leased else None
        if self.workspace.state not in LEASED:
            due = None
        before = len(Mailbox.delivered)
        trouble = Mailbox.trouble
        with contextlib.suppress(Killed):
            send_due(now=now)
        self._check_mails(before, due=due, trouble=trouble)

    def _check_end(self, was: Workspace, *, retired: bool) -> None:
        """A lease ends when it is over and somebody was told, and not otherwise."""
        now, expected = self.clock.now, self.expected
        workspace = Workspace.objects.get(pk=self.workspace.pk)
        is_over = (
            was.state == Workspace.State.READY
            and was.expires_at is not None
            and was.expires_at <= now
        )
        if not is_over:
            assert not retired
            assert workspace.expires_at == was.expires_at
            return
        if workspace.events.filter(at=now, kind="lease_renewed").exists():
            assert not retired
            expected.set_end(workspace.expires_at, warn=self.warn, now=now)
            return
        unspoken = expected.moments and not expected.said
        assert retired != bool(unspoken)
        if unspoken:
            span = dt.timedelta(seconds=min(expected.moments))
            assert workspace.expires_at == now + span
            expected.set_end(workspace.expires_at, warn=self.warn, now=now)

    def _check_mails(self, before: int, *, due: int | None, trouble: str) -> None:
        now, expected = self.clock.now, self.expected
        mails = [message for _, message in Mailbox.delivered[before:]]
        warnings = [mail for mail in mails if "lease of" in mail.subject]
        is_lost = trouble == "killed before" and Mailbox.trouble == ""
        if due is None:
            assert warnings == []
        else:
            expected.said.add(due)
            assert expected.ends_at is not None
            assert len(warnings) == (0 if is_lost else 1)
            for mail in warnings:
                assert exact(expected.ends_at) in mail.body
                assert expected.ends_at > now
        for mail in mails:
            if "trash" in mail.subject:
                self.workspace.refresh_from_db()
                assert self.workspace.state == Workspace.State.TRASHED
                assert self.workspace.purge_at is not None
                assert exact(self.workspace.purge_at) in mail.body
        sent = Notification.objects.filter(sent_at__isnull=False).count()
        assert sent <= len(Mailbox.delivered)
        assert (
            len(Mailbox.delivered)
            <= Notification.objects.exclude(claimed_at=None).count()
        )


@settings(
    max_examples=15,
    deadline=None,
    # To find the shortest sequence takes longer than to read the one that was found.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=st.lists(STEPS, min_size=3, max_size=25))
def test_whatever_happens_deadlines_are_right_and_mails_true_and_single(
    db: None, clock: Clock, steps: list[tuple[str, object]]
) -> None:
    with transaction.atomic():
        world = World(clock)
        for step, value in steps:
            world.do(step, value)
        transaction.set_rollback(True)
