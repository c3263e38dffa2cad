"""People choose what they are notified of, and how; what protects work stays on."""

from __future__ import annotations

from collections.abc import Callable, Set
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot
from provisioner.lib import clocks
from provisioner.notify.actions.channels import choose_channels
from provisioner.notify.channels import TOPICS, Channel, channels_by_topic, channels_for
from provisioner.notify.models import (
    Notification,
    Subscription,
    Topic,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)
from provisioner.notify.refusals import ChannelStaysOn
from provisioner.notify.sweeps import mails as sweep
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.builds import build, fails
from tests.support.mail_server import BACKEND, Mailbox
from tests.support.requests import workspace_create

MAIL, WEBHOOK = frozenset({Channel.MAIL}), frozenset({Channel.WEBHOOK})
BOTH, NONE = MAIL | WEBHOOK, frozenset[Channel]()


@pytest.fixture(autouse=True)
def mailbox(settings: Settings, tmp_path: Path) -> None:
    settings.EMAIL_BACKEND = BACKEND
    settings.LOG_DIR = tmp_path
    Mailbox.empty()


def choose(person: User, topic: Topic, channels: Set[Channel]) -> None:
    chosen = {channel: channel in channels for channel in Channel}
    choose_channels(by=person, topic=topic, chosen=chosen)


def subjects() -> list[str]:
    """Send what is due; return the subjects of all mails."""
    sweep.send_due(now=clocks.database_now())
    return [str(message.subject) for _, message in Mailbox.delivered]


def move(workspace: Workspace, state: Workspace.State) -> None:
    is_bad = state == Workspace.State.FAILED
    code, message = ("space", "The volume is full.") if is_bad else ("", "")
    set_workspace_state(workspace, state, code=code, message=message)


def test_every_event_has_a_topic_and_defaults_are_as_for_everybody(
    alice: User,
) -> None:
    assert set(TOPICS) == {*Notification.Kind.values, *WebhookEvent.values}
    assert channels_by_topic(alice) == {
        Topic.WORKSPACES: WEBHOOK,
        Topic.LEASES: BOTH,
        Topic.SNAPSHOTS: BOTH,
        Topic.VOLUMES: BOTH,
        Topic.TEMPLATES: BOTH,
        Topic.SERVERS: BOTH,
    }
    choose(alice, Topic.TEMPLATES, NONE)
    assert channels_for(alice, "template.failed") == NONE
    assert channels_for(alice, "template_recovered") == NONE
    assert channels_for(alice, "snapshot_withdrawn") == BOTH


def test_what_is_turned_off_is_not_sent(
    alice: User, carol: User, admin: User, snapshot: Snapshot
) -> None:
    User.objects.filter(pk__in=[alice.pk, carol.pk]).update(email="team@example.com")
    for person in (alice, carol):
        Webhook.objects.create(
            owner=person, url="https://h.example/", events=WebhookEvent.values
        )
        Subscription.objects.create(template=snapshot.template, user=person)
    choose(alice, Topic.TEMPLATES, NONE)
    fails(build(snapshot.template, by=admin, change=101))

    assert len(subjects()) == 1
    notice = Notification.objects.get(recipient=alice)
    assert "alice has turned off mails about “Builds and tests" in notice.void_reason
    delivery = WebhookDelivery.objects.get()
    assert delivery.webhook.owner == carol


def test_a_webhook_about_everybody_s_workspaces_is_not_its_owner_s_alone(
    alice: User, admin: User, snapshot: Snapshot
) -> None:
    choose(admin, Topic.WORKSPACES, NONE)
    Webhook.objects.create(
        owner=admin,
        url="https://h.example/",
        events=WebhookEvent.values,
        is_for_all=True,
    )
    workspace = workspace_create(by=alice, template=snapshot.template)
    set_workspace_state(workspace, Workspace.State.READY)
    assert WebhookDelivery.objects.get().event == "workspace.ready"


@pytest.mark.parametrize(
    ("state", "said"),
    [(Workspace.State.READY, "is ready"), (Workspace.State.FAILED, "failed")],
)
def test_who_wants_it_is_mailed_that_a_workspace_is_ready_or_failed(
    alice: User, snapshot: Snapshot, state: Workspace.State, said: str
) -> None:
    User.objects.filter(pk=alice.pk).update(email="alice@example.com")
    first = workspace_create(by=alice, template=snapshot.template)
    move(first, state)
    assert subjects() == []

    choose(alice, Topic.WORKSPACES, MAIL)
    second = workspace_create(by=alice, template=snapshot.template)
    move(second, state)
    assert subjects() == [f"{second.name} {said}"]
    [(_, message)] = Mailbox.delivered
    assert f"/workspaces/{second.pk}/" in message.body
    assert subjects() == [f"{second.name} {said}"]  # already done


def test_what_comes_after_it_was_ready_is_no_mail_about_provisioning(
    alice: User, snapshot: Snapshot
) -> None:
    User.objects.filter(pk=alice.pk).update(email="alice@example.com")
    choose(alice, Topic.WORKSPACES, MAIL)
    workspace = workspace_create(by=alice, template=snapshot.template)
    move(workspace, Workspace.State.READY)
    assert subjects() == [f"{workspace.name} is ready"]

    # A retirement that unsubmitted work stops, and a restore that fails.
    for state in ("retiring", "ready", "retiring", "restoring", "failed"):
        move(workspace, Workspace.State(state))
        assert subjects() == [f"{workspace.name} is ready"]


def test_mails_about_leases_stay(alice: User) -> None:
    with pytest.raises(ChannelStaysOn):
        choose(alice, Topic.LEASES, WEBHOOK)
    choose(alice, Topic.LEASES, MAIL)
    assert channels_for(alice, "lease_ends") == MAIL
    assert channels_for(alice, "workspace.trashed") == MAIL


def test_people_choose_on_their_page(
    alice: User, carol: User, snapshot: Snapshot, signed_in: Callable[[User], Client]
) -> None:
    where = reverse("my-notifications")
    assert Client().get(where).status_code == 302
    client = signed_in(alice)
    page = client.get(where).text
    assert "These mails stay on: they protect your work." in page
    assert "You get no mail. This installation sends no mail" not in page
    assert "You have no webhook." in page

    # A box that is not sent is one that is not ticked; that of leases is disabled.
    sent = {"snapshots-mail": "on", "workspaces-mail": "on", "leases-webhook": "on"}
    assert "Saved." in client.post(where, sent, follow=True).text
    client.post(where, sent)
    assert channels_by_topic(alice) == {
        Topic.WORKSPACES: MAIL,
        Topic.LEASES: BOTH,
        Topic.SNAPSHOTS: MAIL,
        Topic.VOLUMES: NONE,
        Topic.TEMPLATES: NONE,
        Topic.SERVERS: NONE,
    }
    assert channels_by_topic(carol)[Topic.TEMPLATES] == BOTH
    told = Event.objects.filter(kind="notifications_chosen").order_by("pk")
    assert [event.message for event in told] == [
        "Notifications about “My workspaces are ready, or have failed”: by mail.",
        "Notifications about “Withdrawn snapshots”: by mail.",
        "Notifications about “Volumes that fill up”: none.",
        "Notifications about “Builds and tests of templates”: none.",
        "Notifications about “Checkpoints, archives and drills, for administrators”: "
        "none.",
    ]

    User.objects.filter(pk=alice.pk).update(email="alice@example.com")
    template = reverse("template-detail", args=[snapshot.template_id])
    assert (
        "No mail will be sent. alice has turned off mails" in client.get(template).text
    )


def test_the_api_lists_and_changes_one_s_own_choices(alice: User) -> None:
    _, token = token_create(by=alice)
    client, json = Client(), "application/json"
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    listed = client.get(reverse("api:notification-list")).json()["results"]
    assert listed[1] == {
        "topic": "leases",
        "mail": True,
        "webhook": True,
        "stays": ["mail"],
    }

    def change(topic: str, **sent: bool) -> tuple[int, dict[str, object]]:
        where = reverse("api:notification-detail", args=[topic])
        answer = client.patch(where, sent, content_type=json)
        return answer.status_code, answer.json()

    assert change("workspaces", mail=True)[1]["mail"] is True
    assert channels_by_topic(alice)[Topic.WORKSPACES] == BOTH
    assert change("leases", mail=False)[0] == 409
    assert change("leases", mail=False)[1]["code"] == "channel_stays_on"
    assert change("nothing", mail=False)[0] == 404
