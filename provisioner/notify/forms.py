"""What people type about webhooks, checked for shape."""

from __future__ import annotations

from typing import Any

from django import forms

from provisioner.accounts.models import User
from provisioner.accounts.permissions import can_administer
from provisioner.catalog.forms.choices import TemplateChoiceField
from provisioner.catalog.models import Template
from provisioner.gateways.webhooks.addresses import LONGEST_URL
from provisioner.notify.models import Webhook, WebhookEvent
from provisioner.web.forms import AskingForm


class WebhookChangeForm(AskingForm):
    url = forms.CharField(
        max_length=LONGEST_URL,
        label="Address",
        help_text="Such as https://hooks.example.com/cloneyard. No name or password in "
        "it: messages are signed.",
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "class": "code"}
        ),
    )
    events = forms.MultipleChoiceField(
        choices=WebhookEvent.choices,
        label="Events",
        widget=forms.SelectMultiple(attrs={"size": len(WebhookEvent)}),
    )

    @staticmethod
    def initial_of(webhook: Webhook) -> dict[str, Any]:
        return {"url": webhook.url, "events": webhook.events}


class WebhookCreateForm(WebhookChangeForm):
    template = TemplateChoiceField(
        required=False,
        queryset=Template.objects.order_by("name"),
        empty_label="All templates, and my workspaces",
        label="About",
    )
    is_for_all = forms.BooleanField(
        required=False, label="About workspaces of everybody, too"
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not can_administer(user):
            del self.fields["is_for_all"]
