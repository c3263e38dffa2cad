"""Deliveries to webhooks: written with their event, signed, retried, given up."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot, Template
from provisioner.gateways.webhooks.sending import signature
from provisioner.notify import chat, webhooks
from provisioner.notify.actions import webhooks as actions
from provisioner.notify.models import (
    Webhook,
    WebhookDelivery,
    WebhookEvent,
    WebhookFormat,
)
from provisioner.notify.sweeps import webhooks as sweep
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.builds import build, fails, fails_its_tests, submitted, succeeds
from tests.support.chats import check_slack, check_teams
from tests.support.clock import Clock
from tests.support.factories import TemplateFactory, UserFactory
from tests.support.requests import workspace_create
from tests.support.webhook_receiver import Listener, listening

State = WebhookDelivery.State


@pytest.fixture(autouse=True)
def _loopback_allowed(settings: Settings, tmp_path: Path) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.LOG_DIR = tmp_path


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as it:
        yield it


@pytest.fixture
def hook(alice: User, listener: Listener) -> Webhook:
    """One of alice's, told of everything."""
    return make_hook(alice, listener)


def make_hook(owner: User, listener: Listener, **fields: Any) -> Webhook:
    fields = {"url": listener.url, "events": WebhookEvent.values, **fields}
    return Webhook.objects.create(owner=owner, **fields)


def ready_workspace(owner: User, snapshot: Snapshot) -> Workspace:
    workspace = workspace_create(by=owner, template=snapshot.template)
    set_workspace_state(workspace, Workspace.State.READY)
    return workspace


def deliver_all() -> None:
    for pk in WebhookDelivery.objects.filter(state=State.WAITING).values_list(
        "pk", flat=True
    ):
        sweep.deliver(pk)


def events_told() -> list[str]:
    return list(WebhookDelivery.objects.order_by("pk").values_list("event", flat=True))


# --- what is written, and for whom


def test_a_workspace_that_is_ready_sends_a_signed_event(
    hook: Webhook, alice: User, snapshot: Snapshot, listener: Listener
) -> None:
    workspace = ready_workspace(alice, snapshot)
    deliver_all()

    [heard] = listener.heard
    said = json.loads(heard.body)
    assert said["event"] == heard.headers["Cloneyard-Event"] == "workspace.ready"
    assert said["workspace"]["id"] == workspace.pk
    assert said["workspace"]["owner"] == "alice"
    assert said["id"] == heard.headers["Cloneyard-Delivery"]
    expected = signature(
        hook.secret,
        timestamp=int(heard.headers["Cloneyard-Timestamp"]),
        body=heard.body,
    )
    assert heard.headers["Cloneyard-Signature"] == expected
    [delivery] = WebhookDelivery.objects.all()
    assert (delivery.state, delivery.response_code) == (State.DELIVERED, 204)


def test_a_message_goes_with_its_event_or_not_at_all(
    hook: Webhook, alice: User, snapshot: Snapshot
) -> None:
    with transaction.atomic():
        ready_workspace(alice, snapshot)
        assert WebhookDelivery.objects.count() == 1
        transaction.set_rollback(True)
    assert not WebhookDelivery.objects.exists()


def test_only_administrators_hear_of_workspaces_of_others(
    listener: Listener, alice: User, carol: User, admin: User, snapshot: Snapshot
) -> None:
    make_hook(carol, listener)
    make_hook(admin, listener)
    for_all = make_hook(admin, listener, is_for_all=True)
    make_hook(alice, listener, template=snapshot.template)
    make_hook(alice, listener, is_enabled=False)
    make_hook(alice, listener, events=["workspace.failed"])

    ready_workspace(alice, snapshot)

    assert [each.webhook for each in WebhookDelivery.objects.all()] == [for_all]
    admin.is_staff = False
    admin.save()
    deliver_all()
    assert listener.heard == []
    delivery = WebhookDelivery.objects.get()
    assert delivery.state == State.VOID
    assert "no longer an administrator" in delivery.error
    ready_workspace(UserFactory.create(), snapshot)
    assert WebhookDelivery.objects.count() == 1


def test_a_template_sends_one_event_when_it_fails_and_one_when_it_recovers(
    hook: Webhook, admin: User, template: Template, snapshot: Snapshot, clock: Clock
) -> None:
    Snapshot.objects.update(created_at=clock.now - dt.timedelta(hours=1))
    submitted(template, 101, "alice")
    first = build(template, by=admin, change=101)
    first.steps.get(name="build").log_path.write_text("key.c: error\n")
    fails(first)
    fails(build(template, by=admin, change=101))
    assert events_told() == ["template.failed"]
    said = json.loads(WebhookDelivery.objects.get().body)
    assert said["template"]["name"] == template.name
    assert said["build"]["change"] == 101
    assert [each["user"] for each in said["build"]["suspects"]] == ["alice"]
    assert said["build"]["log_tail"] == ["key.c: error"]

    submitted(template, 102, "bob")
    fails(build(template, by=admin, change=102))
    assert events_told() == ["template.failed"] * 2

    succeeds(build(template, by=admin, change=103))
    assert events_told()[2:] == ["template.built", "template.recovered"]
    Template.objects.update(test_command="make test")
    fails_its_tests(build(template, by=admin, change=104))
    assert events_told()[4:] == ["template.failed"]
    said = json.loads(WebhookDelivery.objects.latest("pk").body)
    assert said["build"]["quality"] == "failed"


def test_a_webhook_of_one_template_hears_of_no_other(
    alice: User, admin: User, listener: Listener, template: Template, snapshot: Snapshot
) -> None:
    make_hook(alice, listener, template=template)
    fails(build(TemplateFactory.create(), by=admin, change=7))
    assert events_told() == []
    fails(build(template, by=admin, change=7))
    assert events_told() == ["template.failed"]


# --- how it is sent


def test_what_is_not_taken_is_tried_again_later_and_later(
    hook: Webhook, alice: User, snapshot: Snapshot, listener: Listener, clock: Clock
) -> None:
    listener.codes = [500, 503]
    ready_workspace(alice, snapshot)
    deliver_all()

    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.attempts) == (State.WAITING, 1)
    assert delivery.error == "It answered 500."
    assert delivery.next_try_at == clock.now + dt.timedelta(seconds=15)
    assert Webhook.objects.get(pk=hook.pk).failing_since == clock.now

    deliver_all()
    delivery.refresh_from_db()
    assert delivery.next_try_at == clock.now + dt.timedelta(seconds=30)
    deliver_all()
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == (State.DELIVERED, 3)
    assert len(set(listener.bodies)) == 1
    hook.refresh_from_db()
    assert hook.failing_since is None

    sweep.deliver(delivery.pk)  # already done
    assert len(listener.heard) == 3


def test_pauses_add_up_to_some_hours() -> None:
    pauses = [sweep.pause_after(n) for n in range(1, sweep.MOST_ATTEMPTS)]
    assert pauses[0] == dt.timedelta(seconds=15)
    assert max(pauses) == dt.timedelta(hours=1)
    assert dt.timedelta(hours=4) < sum(pauses, dt.timedelta()) < dt.timedelta(hours=8)


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("120", 120), ("3", 15), ("99999", 3600), ("Wed, 21 Oct 2026 07:28:00 GMT", 15)],
)
def test_who_asks_to_be_left_alone_is_until_then(
    hook: Webhook, listener: Listener, clock: Clock, asked: str, seconds: int
) -> None:
    """Slack and Teams answer 429, Retry-After says for how long."""
    listener.codes, listener.retry_after = [429], asked
    WebhookDelivery.objects.create(webhook=hook, event="workspace.ready", body="{}")
    deliver_all()

    delivery = WebhookDelivery.objects.get()
    assert delivery.state == State.WAITING
    assert delivery.next_try_at == clock.now + dt.timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("format", "code", "state", "is_on"),
    [
        ("slack", 200, State.DELIVERED, True),
        ("slack", 400, State.GIVEN_UP, True),
        ("slack", 403, State.GIVEN_UP, True),
        ("slack", 404, State.GIVEN_UP, False),
        ("slack", 410, State.GIVEN_UP, False),
        ("slack", 429, State.WAITING, True),
        ("slack", 500, State.WAITING, True),
        ("teams", 202, State.DELIVERED, True),
        ("teams", 401, State.GIVEN_UP, True),
        ("teams", 404, State.GIVEN_UP, False),
        ("teams", 429, State.WAITING, True),
        ("cloneyard", 404, State.WAITING, True),
    ],
)
def test_what_a_chat_will_never_take_is_given_up_at_once(
    hook: Webhook, listener: Listener, format: str, code: int, state: str, is_on: bool
) -> None:
    listener.codes = [code]
    Webhook.objects.update(format=format)
    WebhookDelivery.objects.create(webhook=hook, event="workspace.ready", body="{}")
    deliver_all()

    delivery = WebhookDelivery.objects.get()
    hook.refresh_from_db()
    assert (delivery.state, hook.is_enabled) == (state, is_on)
    if state == State.GIVEN_UP:
        refusal = chat.REFUSALS[WebhookFormat(format)][code]
        assert delivery.error == f"It answered {code}. {refusal.sentence}"
    assert hook.disabled_reason == ("" if is_on else delivery.error)


@pytest.mark.parametrize("format", ["slack", "teams"])
def test_a_chat_gets_each_event_in_its_form_with_links(
    alice: User,
    admin: User,
    snapshot: Snapshot,
    listener: Listener,
    clock: Clock,
    settings: Settings,
    format: str,
) -> None:
    settings.PUBLIC_URL = "https://cloneyard.example"
    check = {"slack": check_slack, "teams": check_teams}[format]
    hook = make_hook(alice, listener, format=format)
    Snapshot.objects.update(created_at=clock.now - dt.timedelta(hours=1))
    workspace = ready_workspace(alice, snapshot)
    submitted(snapshot.template, 101, "alice")
    failed = build(snapshot.template, by=admin, change=101)
    failed.steps.get(name="build").log_path.write_text("cc a.c\nerror: <b>\n")
    fails(failed)
    succeeds(build(snapshot.template, by=admin, change=101))
    webhooks.write_test(hook, at="")
    deliver_all()

    assert len(listener.heard) == 5
    for heard in listener.heard:
        check(json.loads(heard.body))
        assert "Cloneyard-Signature" not in heard.headers
    told, ready = (heard.body.decode() for heard in listener.heard[-2:])
    assert f"https://cloneyard.example/workspaces/{workspace.pk}/" in ready
    assert f"{workspace.name} is ready" in ready
    assert str(workspace.path) in ready
    assert f"https://cloneyard.example/operations/{failed.pk}/log/" in told
    assert "alice: Work of alice" in told
    assert "error: " in told


def test_after_many_attempts_a_message_is_given_up(
    hook: Webhook, alice: User, snapshot: Snapshot, listener: Listener
) -> None:
    listener.codes = [500]
    ready_workspace(alice, snapshot)
    WebhookDelivery.objects.update(attempts=sweep.MOST_ATTEMPTS - 1)
    deliver_all()

    delivery = WebhookDelivery.objects.get()
    assert delivery.state == State.GIVEN_UP
    assert delivery.next_try_at is None


def test_who_fails_for_days_is_turned_off_with_an_event(
    hook: Webhook, alice: User, snapshot: Snapshot, listener: Listener, clock: Clock
) -> None:
    listener.codes = [500, 500]
    ready_workspace(alice, snapshot)
    deliver_all()
    clock.advance(days=3)
    ready_workspace(alice, snapshot)
    first = WebhookDelivery.objects.earliest("pk")
    WebhookDelivery.objects.filter(pk=first.pk).update(attempts=sweep.MOST_ATTEMPTS - 1)
    sweep.deliver(first.pk)

    hook.refresh_from_db()
    assert not hook.is_enabled
    assert "It answered 500." in hook.disabled_reason
    assert {d.state for d in WebhookDelivery.objects.all()} == {
        State.GIVEN_UP,
        State.VOID,
    }
    event = Event.objects.get(kind="webhook_disabled")
    assert event.subject_id == hook.pk
    assert "hook?a=1" not in event.subject + event.message
    ready_workspace(alice, snapshot)
    assert WebhookDelivery.objects.count() == 2


def test_a_first_attempt_turns_nothing_off_however_long_nothing_was_sent(
    hook: Webhook, alice: User, snapshot: Snapshot, listener: Listener, clock: Clock
) -> None:
    listener.codes = [500, 503]
    ready_workspace(alice, snapshot)
    WebhookDelivery.objects.update(attempts=sweep.MOST_ATTEMPTS - 1)
    deliver_all()
    clock.advance(days=21)
    ready_workspace(alice, snapshot)
    deliver_all()

    hook.refresh_from_db()
    assert hook.is_enabled
    delivery = WebhookDelivery.objects.latest("pk")
    assert (delivery.state, delivery.attempts) == (State.WAITING, 1)
    deliver_all()
    delivery.refresh_from_db()
    assert delivery.state == State.DELIVERED


def test_a_test_says_at_once_what_came_of_it_and_is_sent_when_turned_off(
    hook: Webhook, listener: Listener
) -> None:
    Webhook.objects.update(is_enabled=False)
    hook.refresh_from_db()
    listener.codes = [200, 404]
    for expected in (State.DELIVERED, State.GIVEN_UP):
        delivery = webhooks.write_test(hook, at="2026-03-02T09:00:00+00:00")
        sweep.deliver(delivery.pk)
        delivery.refresh_from_db()
        assert delivery.state == expected
    hook.refresh_from_db()
    assert hook.failing_since is None
    assert [h.headers["Cloneyard-Event"] for h in listener.heard] == ["test", "test"]


def test_what_waits_is_not_asked_for_twice(
    hook: Webhook, alice: User, snapshot: Snapshot, listener: Listener
) -> None:
    ready_workspace(alice, snapshot)
    [ready] = hook.deliveries.all()
    assert actions.delivery_repeat(by=alice, delivery=ready) == ready
    test = actions.webhook_test(by=alice, webhook=hook)
    assert actions.webhook_test(by=alice, webhook=hook) == test
    deliver_all()

    assert actions.webhook_test(by=alice, webhook=hook) != test
    ready.refresh_from_db()
    assert actions.delivery_repeat(by=alice, delivery=ready) != ready
    assert hook.deliveries.count() == 4


def test_webhooks_of_one_person_that_stay_silent_delay_nobody_else(
    jobs_emptied: None, alice: User, carol: User, listener: Listener
) -> None:
    """However many she has, two of her messages are under way."""
    for owner in (*[alice] * 6, carol):
        webhooks.write_test(make_hook(owner, listener), at="")

    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id")
        worker = cursor.fetchone()
        for _ in range(7):
            cursor.execute(
                "SELECT procrastinate_fetch_job_v2(ARRAY['deliveries'], %s)", worker
            )
    under_way = ProcrastinateJob.objects.filter(status="doing")
    owners = WebhookDelivery.objects.filter(
        pk__in=[job.args["delivery_id"] for job in under_way]
    ).values_list("webhook__owner__username", flat=True)
    assert sorted(owners) == ["alice", "alice", "carol"]


def test_sending_again_is_the_same_message(
    hook: Webhook, alice: User, snapshot: Snapshot, listener: Listener
) -> None:
    ready_workspace(alice, snapshot)
    deliver_all()
    webhooks.write_again(WebhookDelivery.objects.get())
    deliver_all()

    first, second = listener.heard
    assert first.body == second.body
    assert first.headers["Cloneyard-Delivery"] == second.headers["Cloneyard-Delivery"]


def test_old_messages_are_forgotten(
    hook: Webhook, alice: User, snapshot: Snapshot, clock: Clock
) -> None:
    ready_workspace(alice, snapshot)
    deliver_all()
    ready_workspace(alice, snapshot)
    sweep.forget_old(now=clock.advance(days=29))
    assert WebhookDelivery.objects.count() == 2
    sweep.forget_old(now=clock.advance(days=2))
    assert WebhookDelivery.objects.get().state == State.WAITING


def test_a_worker_sends_what_was_committed_and_what_lost_its_job(
    jobs_emptied: None,
    hook: Webhook,
    listener: Listener,
    run_jobs: Callable[[], None],
) -> None:
    """With real jobs, in transactions of their own."""
    webhooks.write_test(hook, at="")
    run_jobs()
    assert len(listener.heard) == 1

    lost = webhooks.write_test(hook, at="")
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE procrastinate_jobs CASCADE")
    WebhookDelivery.objects.filter(pk=lost.pk).update(
        next_try_at=lost.created_at - dt.timedelta(minutes=5)
    )
    assert sweep.queue_lost(now=lost.created_at) == 1
    assert sweep.queue_lost(now=lost.created_at) == 0
    run_jobs()
    assert len(listener.heard) == 2


def test_the_secret_follows_from_our_key_and_is_not_in_the_database(
    hook: Webhook, settings: Settings
) -> None:
    secret = hook.secret
    assert Webhook.objects.get(pk=hook.pk).secret == secret
    row = Webhook.objects.filter(pk=hook.pk).values().get()
    assert secret not in map(str, row.values())
    settings.SECRET_KEY = "another"
    assert hook.secret != secret
