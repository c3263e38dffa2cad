"""What administrators are told of Perforce servers, by mail and webhook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.lib import clocks
from provisioner.notify.actions.administrators import administrators_tell
from provisioner.notify.actions.channels import choose_channels
from provisioner.notify.channels import Channel
from provisioner.notify.models import (
    Notification,
    Topic,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
    WebhookFormat,
)
from provisioner.notify.sweeps import mails as sweep
from provisioner.sites.models import PerforceServer
from tests.support.factories import SiteFactory, UserFactory
from tests.support.mail_server import BACKEND, Mailbox

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def mailbox(settings: Settings, tmp_path: Path) -> None:
    settings.EMAIL_BACKEND = BACKEND
    settings.LOG_DIR = tmp_path
    Mailbox.empty()


@pytest.fixture
def server() -> PerforceServer:
    server: PerforceServer = SiteFactory.create().perforce_server
    return server


@pytest.fixture
def root() -> User:
    return UserFactory.create(username="root", is_staff=True, email="root@example.com")


def tell(server: PerforceServer) -> None:
    administrators_tell(
        server,
        title="The checkpoint of main failed",
        sentence="There is no room.",
        path="/checkpoints/",
    )


def sent() -> list[str]:
    """Send what is due; return the subjects of all mails."""
    sweep.send_due(now=clocks.database_now())
    return Mailbox.subjects()


def test_each_administrator_gets_a_mail_once(
    server: PerforceServer, root: User, settings: Settings
) -> None:
    settings.PUBLIC_URL = "https://cloneyard.example.com"
    UserFactory.create(username="alice", email="alice@example.com")
    UserFactory.create(username="twin", is_staff=True, email="ROOT@example.com")
    UserFactory.create(username="nowhere", is_staff=True, email="")

    tell(server)

    assert sent() == ["The checkpoint of main failed"]
    assert len(sent()) == 1
    [(_, message)] = Mailbox.delivered
    text = str(message.body)
    assert "Hello root" in text
    assert f"about the Perforce server {server.name}: There is no room." in text
    assert "https://cloneyard.example.com/checkpoints/" in text
    whys = Notification.objects.exclude(void_reason="").order_by("recipient__username")
    assert [each.void_reason for each in whys] == [
        "The account nowhere has no mail address.",
        "Somebody else with this mail address already got it.",
    ]
    event = Event.objects.get(kind="notification_sent")
    assert event.subject_id == server.pk


def test_who_turned_it_off_or_left_meanwhile_gets_none(
    server: PerforceServer, root: User
) -> None:
    other = UserFactory.create(
        username="other", is_staff=True, email="other@example.com"
    )
    choose_channels(by=root, topic=Topic.SERVERS, chosen=dict.fromkeys(Channel, False))
    tell(server)
    User.objects.filter(pk=other.pk).update(is_active=False)

    assert sent() == []

    [notice] = Notification.objects.all()
    assert notice.void_reason == "The account other is closed."


@pytest.mark.parametrize("format", WebhookFormat)
def test_the_webhooks_of_administrators_alone_hear_of_it(
    server: PerforceServer, root: User, format: WebhookFormat
) -> None:
    for owner in (root, UserFactory.create(username="alice")):
        Webhook.objects.create(
            owner=owner,
            url="https://hooks.example/",
            format=format,
            events=WebhookEvent.values,
        )

    tell(server)

    [delivery] = WebhookDelivery.objects.select_related("webhook__owner")
    assert delivery.webhook.owner == root
    assert delivery.event == "server.trouble"
    assert "There is no room." in delivery.body
    assert "/checkpoints/" in delivery.body
    if format == WebhookFormat.CLONEYARD:
        body = json.loads(delivery.body)
        assert body["server"]["name"] == server.name
    else:
        assert "The checkpoint of main failed" in delivery.body
