"""Forms of policies for snapshots of workspaces, and of what is taken back."""

from __future__ import annotations

from django import forms

from provisioner.catalog.models import Template
from provisioner.lib.inner_paths import LONGEST_PATH
from provisioner.sites.models import Site
from provisioner.web.forms import AskingForm, CodeInput
from provisioner.workspace_snapshots.models import (
    MOST_DAILY,
    MOST_HOURLY,
    MOST_PERCENT,
)
from provisioner.workspaces.models import Workspace


class SnapshotPolicyForm(AskingForm):
    """A policy, or a change of one: what stays empty is as it was."""

    site = forms.ModelChoiceField(queryset=Site.objects.order_by("name"))
    template = forms.ModelChoiceField(
        queryset=Template.objects.filter(archived_at=None).order_by("name"),
        required=False,
        empty_label="Every template",
    )
    purpose = forms.ChoiceField(
        choices=[("", "Every purpose"), *Workspace.Purpose.choices], required=False
    )
    hourly = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_HOURLY,
        label="Hourly snapshots kept",
        help_text="The oldest is deleted first. With 0 and 0 none are taken. Empty: "
        "unchanged, or 24 in a new policy.",
    )
    daily = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_DAILY,
        label="Daily snapshots kept",
        help_text="Empty: unchanged, or 7 in a new policy.",
    )
    max_percent = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_PERCENT,
        label="Space of the snapshots of a workspace, in percent",
        help_text="Of its volume. Beyond that the oldest is deleted, and the newest "
        "stays. 0: no limit. Empty: unchanged, or no limit in a new policy.",
    )


class TakeBackForm(AskingForm):
    """The action checks the path."""

    path = forms.CharField(
        max_length=LONGEST_PATH,
        label="File or directory",
        help_text="From the workspace's root, such as src/main.c.",
        widget=CodeInput(),
    )
