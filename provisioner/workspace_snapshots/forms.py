"""Forms of policies for snapshots of workspaces, and of what is taken back."""

from __future__ import annotations

from django import forms

from provisioner.catalog.models import Template
from provisioner.lib.inner_paths import LONGEST_PATH
from provisioner.sites.models import Site
from provisioner.web.forms import AskingForm, CodeInput
from provisioner.workspace_snapshots.models import MOST_DAILY, MOST_HOURLY
from provisioner.workspaces.models import Workspace


class SnapshotPolicyForm(AskingForm):
    """A policy; another for the same workspaces is replaced."""

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
        min_value=0,
        max_value=MOST_HOURLY,
        initial=24,
        label="Hourly snapshots kept",
        help_text="The oldest is deleted first. With 0 and 0 none are taken.",
    )
    daily = forms.IntegerField(
        min_value=0, max_value=MOST_DAILY, initial=7, label="Daily snapshots kept"
    )


class TakeBackForm(AskingForm):
    """The action checks the path."""

    path = forms.CharField(
        max_length=LONGEST_PATH,
        label="File or directory",
        help_text="From the workspace's root, such as src/main.c.",
        widget=CodeInput(),
    )
