"""Forms for notification channels and webhooks."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, ClassVar

from django import forms

from provisioner.accounts.models import User
from provisioner.accounts.permissions import can_administer
from provisioner.catalog.forms.choices import TemplateChoiceField
from provisioner.catalog.models import Template
from provisioner.gateways.webhooks.addresses import LONGEST_URL
from provisioner.notify.channels import STAY, Channel
from provisioner.notify.models import Topic, Webhook, WebhookEvent, WebhookFormat
from provisioner.web.forms import AskingForm, CodeInput


class ChannelsForm(AskingForm):
    """A row per topic with a checkbox per channel."""

    HELP: ClassVar = {
        Topic.WORKSPACES: "A workspace you requested is ready, or could not be "
        "provisioned.",
        Topic.LEASES: "A lease ends soon; a workspace was retired, could not be "
        "retired, or looks abandoned. These mails stay on: they protect your work.",
        Topic.SNAPSHOTS: "Somebody withdrew the snapshot of one of your workspaces. "
        "Webhooks report all of them.",
        Topic.VOLUMES: "A volume of one of your workspaces or templates is 85 or 95 % "
        "full. Administrators hear of all templates. Webhooks report all templates.",
        Topic.TEMPLATES: "A template you subscribed to, or whose build included your "
        "change, failed or recovered. Webhooks report all templates.",
        Topic.SERVERS: "A checkpoint, a verification or a disaster drill of a Perforce "
        "server failed, files are damaged, or the newest checkpoint is too old. Only "
        "administrators hear of it.",
    }

    def __init__(
        self, *args: Any, channels: Mapping[Topic, Set[Channel]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        for topic, chosen in channels.items():
            for channel in Channel:
                self.fields[f"{topic}-{channel}"] = forms.BooleanField(
                    required=False,
                    initial=channel in chosen,
                    disabled=channel in STAY.get(topic, ()),
                    widget=forms.CheckboxInput(
                        attrs={"aria-describedby": f"{topic}_helptext"}
                    ),
                )

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each topic with its help and its fields, by channel."""
        return [
            {
                "topic": topic,
                "help": self.HELP[topic],
                **{str(channel): self[f"{topic}-{channel}"] for channel in Channel},
            }
            for topic in Topic
        ]

    @property
    def chosen(self) -> dict[Topic, dict[Channel, bool]]:
        """The chosen channels of each topic."""
        return {
            topic: {each: self.cleaned_data[f"{topic}-{each}"] for each in Channel}
            for topic in Topic
        }


class WebhookChangeForm(AskingForm):
    url = forms.CharField(
        max_length=LONGEST_URL,
        label="Address",
        help_text="For example https://hooks.example.com/cloneyard, without a name or "
        "password. Others see only its host.",
        widget=CodeInput,
    )
    events = forms.MultipleChoiceField(
        choices=WebhookEvent.choices,
        label="Events",
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(
        self, *args: Any, user: User, webhook: Webhook | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        if webhook is None:
            return
        is_owner = webhook.owner_id == user.pk
        address = webhook.url if is_owner else ""
        self.initial = {"url": address, "events": webhook.events}
        if not is_owner:
            self.fields["url"].required = False
            self.fields[
                "url"
            ].help_text = f"Only {webhook.owner} can see it. Leave it empty to keep it."

    def clean_url(self) -> str | None:
        return self.cleaned_data["url"] or None


class WebhookCreateForm(WebhookChangeForm):
    format = forms.ChoiceField(
        choices=WebhookFormat.choices,
        initial=WebhookFormat.CLONEYARD,
        help_text="For Slack, enter the address of a Slack app's incoming webhook. "
        "For Teams, enter that of a workflow “Send webhook alerts to a channel”. The "
        "format cannot be changed later.",
    )
    template = TemplateChoiceField(
        required=False,
        queryset=Template.objects.order_by("name"),
        empty_label="All templates and my workspaces",
        label="About",
    )
    is_for_all = forms.BooleanField(
        required=False, label="Include everybody's workspaces"
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        if not can_administer(user):
            del self.fields["is_for_all"]
