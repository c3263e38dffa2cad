"""Forms of splits, and filters of snapshots."""

from __future__ import annotations

from django import forms

from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm


class SplitPolicyForm(AskingForm):
    owners_may_split = forms.BooleanField(
        required=False,
        label="Owners may split their own workspaces",
        help_text="Otherwise administrators alone.",
    )


class SnapshotFilterForm(FilterForm):
    """Filters of snapshots with what holds them."""

    q = forms.CharField(required=False, max_length=100, label="Template or snapshot")
    site = forms.CharField(required=False, max_length=100, label="Site")
