"""Forms of splits."""

from __future__ import annotations

from django import forms

from provisioner.web.forms import AskingForm


class SplitPolicyForm(AskingForm):
    owners_may_split = forms.BooleanField(
        required=False,
        label="Owners may split their own workspaces",
        help_text="Otherwise administrators alone.",
    )
