"""The form of copies at a mirror's site."""

from __future__ import annotations

from django import forms

from provisioner.copies.models import LEAST_MINUTES, MOST_MINUTES
from provisioner.web.forms import AskingForm
from provisioner.workspaces.models import Workspace


class CopyRuleForm(AskingForm):
    every_minutes = forms.IntegerField(
        min_value=LEAST_MINUTES,
        max_value=MOST_MINUTES,
        label="Every … minutes",
        help_text="What was done since the last transfer is lost with the site.",
    )
    purposes = forms.MultipleChoiceField(
        choices=Workspace.Purpose.choices,
        widget=forms.CheckboxSelectMultiple,
        label="Workspaces for",
        help_text="Throwaway workspaces can be made again; they need no copy.",
    )
