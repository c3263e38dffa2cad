"""Webhooks and subscriptions on pages and by API: a secret that is shown once."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Template
from provisioner.notify.models import Subscription, Webhook, WebhookDelivery

URL = "https://hooks.example.com/a?key=hidden"


def test_a_webhook_is_made_tested_switched_and_deleted(
    alice: User, signed_in: Callable[[User], Client]
) -> None:
    client = signed_in(alice)
    events = ["workspace.ready", "template.failed"]
    form = {"url": URL, "events": events, "format": "cloneyard"}
    made = client.post(reverse("webhook-create"), form)
    webhook = Webhook.objects.get()
    assert webhook.secret in made.content.decode()
    assert "no-store" in made["Cache-Control"]

    where = reverse("webhook-detail", args=[webhook.pk])
    client.post(reverse("webhook-test", args=[webhook.pk]))
    delivery = WebhookDelivery.objects.get()
    client.post(reverse("webhook-again", args=[webhook.pk, delivery.pk]))
    page = client.get(where).content.decode()
    assert webhook.secret not in page
    assert page.count(str(delivery.message_id)) >= 2

    client.post(reverse("webhook-switch", args=[webhook.pk]), {"do": "off"})
    webhook.refresh_from_db()
    assert not webhook.is_enabled
    renewed = client.post(reverse("webhook-secret", args=[webhook.pk]))
    before = webhook.secret
    webhook.refresh_from_db()
    assert webhook.secret != before
    assert webhook.secret in renewed.content.decode()
    client.post(reverse("webhook-delete", args=[webhook.pk]))
    assert not Webhook.objects.exists()
    told = "".join(f"{e.message}{e.subject}{e.data}" for e in Event.objects.all())
    assert "hidden" not in told
    assert "whsec" not in told


def test_nothing_is_sent_again_while_a_webhook_is_off_but_a_test(
    alice: User, signed_in: Callable[[User], Client]
) -> None:
    webhook = Webhook.objects.create(
        owner=alice, url=URL, events=["workspace.ready"], is_enabled=False
    )
    sent = [
        WebhookDelivery.objects.create(
            webhook=webhook, event=event, body="{}", state="delivered", next_try_at=None
        )
        for event in ("workspace.ready", "test")
    ]
    one, test = (reverse("webhook-again", args=[webhook.pk, d.pk]) for d in sent)

    client = signed_in(alice)
    page = client.get(reverse("webhook-detail", args=[webhook.pk])).text
    assert test in page
    assert one not in page
    said = client.post(one, follow=True).text
    assert "The webhook is turned off. Nothing is sent until" in said
    assert "It is sent again." not in said
    _, token = token_create(by=alice)
    answer = Client().post(
        reverse("api:webhook-delivery-again", args=[webhook.pk, sent[0].pk]),
        headers={"Authorization": f"Bearer {token}"},
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "webhook_off")
    assert webhook.deliveries.count() == 2

    assert "It is sent again." in client.post(test, follow=True).text
    assert webhook.deliveries.count() == 3


def test_no_test_is_said_to_be_on_its_way_for_an_account_that_is_closed(
    alice: User, admin: User, signed_in: Callable[[User], Client]
) -> None:
    webhook = Webhook.objects.create(owner=alice, url=URL, events=["workspace.ready"])
    User.objects.filter(pk=alice.pk).update(is_active=False)

    tried = reverse("webhook-test", args=[webhook.pk])
    said = signed_in(admin).post(tried, follow=True).text
    _, token = token_create(by=admin)
    answer = Client().post(
        reverse("api:webhook-test", args=[webhook.pk]),
        headers={"Authorization": f"Bearer {token}"},
    )

    assert "The account alice is closed. Nothing is sent until" in said
    assert "on its way" not in said
    assert (answer.status_code, answer.json()["code"]) == (409, "webhook_off")
    assert not webhook.deliveries.exists()


def test_addresses_inside_and_for_all_are_refused(
    alice: User, signed_in: Callable[[User], Client]
) -> None:
    client = signed_in(alice)
    inside = "https://169.254.169.254/"
    form = {"url": inside, "events": ["workspace.ready"], "format": "slack"}
    answer = client.post(reverse("webhook-create"), form)
    assert answer.status_code == 409
    assert "not in the public Internet" in answer.content.decode()

    _, secret = token_create(by=alice)
    answer = Client().post(
        reverse("api:webhook-list"),
        {"url": URL, "events": ["workspace.ready"], "for_all": True},
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )
    assert answer.status_code == 403
    assert not Webhook.objects.exists()


def test_the_api_shows_the_secret_once_and_changes_what_is_given(
    alice: User, template: Template
) -> None:
    _, token = token_create(by=alice)
    client, json = Client(), "application/json"
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    body = {"url": URL, "events": ["template.failed"], "template": template.name}
    made = client.post(reverse("api:webhook-list"), body, content_type=json)
    assert made.status_code == 201
    webhook = Webhook.objects.get()
    assert made.json()["secret"] == webhook.secret
    assert made.json()["template"] == template.name
    changed = client.patch(made["Location"], {"enabled": False}, content_type=json)
    assert changed.status_code == 200
    assert "secret" not in changed.json()
    assert (changed.json()["enabled"], changed.json()["url"]) == (False, URL)
    wrong = client.patch(made["Location"], {"events": ["nothing"]}, content_type=json)
    assert wrong.status_code == 400


def test_a_webhook_of_slack_has_no_secret_but_its_address(
    alice: User, signed_in: Callable[[User], Client]
) -> None:
    client = signed_in(alice)
    form = {"url": URL, "events": ["workspace.ready"], "format": "slack"}
    page = client.post(reverse("webhook-create"), form, follow=True).text
    webhook = Webhook.objects.get()
    assert "Send a test to check that messages arrive." in page
    assert "whsec" not in page
    assert "Replace the secret" not in page
    assert "The webhook is turned off." in page  # what 404 means

    secret = reverse("webhook-secret", args=[webhook.pk])
    said = client.post(secret, follow=True).text
    assert "Messages to Slack are not signed" in said
    _, token = token_create(by=alice)
    headers = {"Authorization": f"Bearer {token}"}
    api = Client().post(
        reverse("api:webhook-secret", args=[webhook.pk]), headers=headers
    )
    assert (api.status_code, api.json()["code"]) == (409, "webhook_not_signed")
    made = (
        Client()
        .post(
            reverse("api:webhook-list"),
            {**form, "format": "teams"},
            content_type="application/json",
            headers=headers,
        )
        .json()
    )
    assert (made["format"], made["secret"], made["url"]) == ("teams", "", URL)


def test_the_address_is_its_owner_s_alone(
    alice: User, admin: User, carol: User, signed_in: Callable[[User], Client]
) -> None:
    """Those of Slack and Teams hold a token. Administrators see and search the host."""
    webhook = Webhook.objects.create(
        owner=alice, url=URL, events=["workspace.ready"], format="slack"
    )
    detail = reverse("webhook-detail", args=[webhook.pk])
    edit = reverse("webhook-edit", args=[webhook.pk])
    everywhere = [detail, edit, reverse("webhook-list")]
    assert "?key=hid" in signed_in(alice).get(detail).text
    assert signed_in(carol).get(detail).status_code == 404
    theirs = signed_in(admin)
    for address in everywhere:
        page = theirs.get(address).text
        assert "hooks.example.com" in page
        assert "?key=hid" not in page
    assert f"/{webhook.pk}/" in theirs.get("/webhooks/?q=hooks").text
    assert f"/{webhook.pk}/" not in theirs.get("/webhooks/?q=hidden").text
    _, token = token_create(by=admin)
    headers = {"Authorization": f"Bearer {token}"}
    answer = Client().get(reverse("api:webhook-list"), headers=headers).json()
    assert answer["results"][0]["url"] == "https://hooks.example.com/…"

    theirs.post(edit, {"url": "", "events": ["workspace.failed"]})
    webhook.refresh_from_db()
    assert (webhook.url, webhook.events) == (URL, ["workspace.failed"])


def test_people_subscribe_on_the_page_and_by_api(
    alice: User, template: Template, signed_in: Callable[[User], Client]
) -> None:
    client = signed_in(alice)
    where = reverse("template-subscribe", args=[template.pk])
    page = reverse("template-detail", args=[template.pk])
    assert "Mail me" in client.get(page).content.decode()
    client.post(where, {"do": "subscribe"})
    client.post(where, {"do": "subscribe"})  # already done
    assert Subscription.objects.get().user == alice
    assert "Stop mailing me" in client.get(page).content.decode()
    assert template.events.filter(kind="template_subscribed").count() == 1
    client.post(where, {"do": "unsubscribe"})
    assert not Subscription.objects.exists()

    _, token = token_create(by=alice)
    headers = {"Authorization": f"Bearer {token}"}
    address = reverse("api:template-mails-subscription", args=[template.pk])
    assert Client().put(address, headers=headers).json()["subscribed"] is True
    assert Client().get(address, headers=headers).json()["subscribed"] is True
    assert Client().delete(address, headers=headers).json()["subscribed"] is False
