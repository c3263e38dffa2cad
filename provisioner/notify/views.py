"""Pages of notifications: channels, webhooks with deliveries, subscriptions."""

from __future__ import annotations

from functools import partial

from django.contrib import messages
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from provisioner.catalog.queries import templates_visible_to
from provisioner.lib.refusals import ActionRefused
from provisioner.notify.actions import subscriptions, webhooks
from provisioner.notify.actions.channels import choose_channels
from provisioner.notify.actions.subscriptions import template_unsubscribe
from provisioner.notify.actions.webhooks import (
    delivery_repeat,
    webhook_renew_secret,
    webhook_update,
)
from provisioner.notify.channels import channels_by_topic
from provisioner.notify.chat import REFUSALS
from provisioner.notify.forms import ChannelsForm, WebhookChangeForm, WebhookCreateForm
from provisioner.notify.lists import deliveries_of
from provisioner.notify.models import Webhook, WebhookFormat
from provisioner.notify.webhooks import webhooks_visible_to
from provisioner.web.http import WebRequest, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.notices import Action, Level, Notice
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST

_ACCEPTED = {
    WebhookFormat.TEAMS: "202 means that the workflow accepted the message. Its run "
    "history shows whether the card was posted."
}


@require_POST
def template_subscribe(request: WebRequest, pk: int) -> HttpResponse:
    """Turn mails about a template on or off."""
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    if request.POST.get("do") == "unsubscribe":
        template_unsubscribe(by=request.user, template=template)
        said = f"You no longer get mails about {template.name}."
    else:
        subscriptions.template_subscribe(by=request.user, template=template)
        said = f"You get a mail when {template.name} fails."
    return done(request, said, "template-detail", pk)


@require_safe_or_POST
def my_notifications(request: WebRequest) -> HttpResponse:
    """Choose the channels of one's notifications."""
    person = request.user
    form = ChannelsForm(posted(request), channels=channels_by_topic(person))
    if form.is_valid():
        for topic, chosen in form.chosen.items():
            choose_channels(by=person, topic=topic, chosen=chosen)
        return done(request, "Saved.", "my-notifications")
    webhooks = person.webhooks.count()
    return form_page(request, "notify/channels.html", form, webhooks=webhooks)


@require_safe_or_POST
def webhook_create(request: WebRequest) -> HttpResponse:
    """Create a webhook. Only this answer shows its secret, if any."""
    form = WebhookCreateForm(posted(request), user=request.user)
    webhook = form.tried(webhooks.webhook_create, by=request.user)
    if webhook is None:
        return form_page(request, "notify/create.html", form)
    if webhook.is_signed:
        return _with_secret(request, webhook)
    said = "Webhook created. Send a test to check that messages arrive."
    return done(request, said, "webhook-detail", webhook.pk)


def _webhook(request: WebRequest, pk: int) -> Webhook:
    return get_object_or_404(webhooks_visible_to(request.user), pk=pk)


def _with_secret(request: WebRequest, webhook: Webhook) -> HttpResponse:
    return render(request, "notify/secret.html", {"webhook": webhook})


@require_safe_or_POST
def webhook_detail(request: WebRequest, pk: int) -> HttpResponseBase:
    """Show a webhook and its deliveries; resend several."""
    webhook = _webhook(request, pk)
    address = webhook.address_for(request.user)
    context = {
        "webhook": webhook,
        "notices": _notices(webhook),
        "actions": _actions(webhook),
        "address": address,
        "is_address_hidden": address != webhook.url,
        "accepted": _ACCEPTED.get(WebhookFormat(webhook.format), ""),
        "refusals": REFUSALS.get(WebhookFormat(webhook.format), {}),
    }
    return list_answer(request, deliveries_of(webhook), "notify/detail.html", context)


def _notices(webhook: Webhook) -> list[Notice]:
    if not webhook.disabled_reason:
        return []
    return [
        Notice(
            level=Level.WARNING,
            title="Turned off",
            texts=(
                webhook.disabled_reason,
                "Fix the receiver, send a test, then turn the webhook on.",
            ),
        )
    ]


def _actions(webhook: Webhook) -> list[Action]:
    """Return the actions on a webhook, the most common first."""

    def url(name: str) -> str:
        return reverse(f"webhook-{name}", args=[webhook.pk])

    turn = "off" if webhook.is_enabled else "on"
    actions = [
        Action(label="Send a test", url=url("test"), is_post=True, look="primary"),
        Action(
            label=f"Turn {turn}", url=url("switch"), is_post=True, sends={"do": turn}
        ),
    ]
    if webhook.is_signed:
        secret = Action(
            label="Replace the secret", url=url("secret"), is_post=True, look="link"
        )
        actions.append(secret)
    return [
        *actions,
        Action(label="Edit", url=url("edit")),
        Action(label="Delete…", url=url("delete"), look="quiet-danger"),
    ]


@require_safe_or_POST
def webhook_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change a webhook's address and events."""
    webhook = _webhook(request, pk)
    form = WebhookChangeForm(posted(request), user=request.user, webhook=webhook)
    if form.tried(webhook_update, by=request.user, webhook=webhook):
        return done(request, "Saved.", "webhook-detail", pk)
    return form_page(request, "notify/edit.html", form, webhook=webhook)


@require_POST
def webhook_switch(request: WebRequest, pk: int) -> HttpResponse:
    """Turn a webhook on or off."""
    is_on = request.POST.get("do") != "off"
    webhook_update(by=request.user, webhook=_webhook(request, pk), is_enabled=is_on)
    said = "Turned on." if is_on else "Turned off."
    return done(request, said, "webhook-detail", pk)


@require_POST
def webhook_test(request: WebRequest, pk: int) -> HttpResponse:
    """Send a test message."""
    webhook = _webhook(request, pk)
    act = partial(webhooks.webhook_test, by=request.user, webhook=webhook)
    said = "Test sent. See the result below."
    return acted(request, act, "webhook-detail", pk, said=said)


@require_POST
def webhook_secret(request: WebRequest, pk: int) -> HttpResponse:
    """Renew a webhook's secret. Only this answer shows it."""
    try:
        webhook = webhook_renew_secret(by=request.user, webhook=_webhook(request, pk))
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
        return redirect("webhook-detail", pk)
    return _with_secret(request, webhook)


@require_safe_or_POST
def webhook_delete(request: WebRequest, pk: int) -> HttpResponse:
    """Ask for confirmation, then delete a webhook."""
    webhook = _webhook(request, pk)
    if request.method == "POST":
        webhooks.webhook_delete(by=request.user, webhook=webhook)
        return done(request, "Deleted.", "webhook-list")
    return render(request, "notify/delete.html", {"webhook": webhook})


@require_POST
def webhook_again(request: WebRequest, pk: int, delivery_pk: int) -> HttpResponse:
    """Resend a message."""
    deliveries = _webhook(request, pk).deliveries.select_related("webhook__owner")
    delivery = get_object_or_404(deliveries, pk=delivery_pk)
    act = partial(delivery_repeat, by=request.user, delivery=delivery)
    return acted(request, act, "webhook-detail", pk, said="It is sent again.")
