"""Forms for snapshots."""

from __future__ import annotations

from django import forms

from provisioner.catalog.actions.snapshots import (
    LONGEST_LABEL,
    LONGEST_NOTES,
    LONGEST_REASON,
)
from provisioner.web.forms import AskingForm


class ReasonForm(AskingForm):
    """The reason for a decision that affects others."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        help_text="One line. Everybody who looks at the template reads it.",
    )


class SnapshotDescribeForm(AskingForm):
    """A snapshot's label and notes."""

    label = forms.CharField(
        required=False,
        max_length=LONGEST_LABEL,
        help_text="A short name for it, such as Alpha 3.",
    )
    notes = forms.CharField(
        required=False,
        max_length=LONGEST_NOTES,
        widget=forms.Textarea(attrs={"rows": 6}),
    )


class RollBackForm(AskingForm):
    """The build to roll back."""

    build = forms.IntegerField(min_value=1, max_value=2**63 - 1)
