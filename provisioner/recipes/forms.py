"""The form of a plan of checkpoints, and filters of results."""

from __future__ import annotations

from django import forms

from provisioner.recipes.models import MOST_DAYS, MOST_HOURS, MOST_WEEKS, DamagedFile
from provisioner.sandboxes.forms import PlanForm
from provisioner.sandboxes.models import P4dVersion
from provisioner.web.filters import FilterForm
from provisioner.web.forms import CodeInput


class VerificationPlanForm(PlanForm):
    """Where and when archives are verified, and whether shelved files are, too."""

    has_shelved = forms.BooleanField(
        required=False,
        label="Shelved files, too",
        help_text="p4 verify -S, after the revisions of each depot.",
    )


class CheckpointPlanForm(PlanForm):
    """Where checkpoints are kept, for how long, and when they are made."""

    version = forms.ModelChoiceField(
        P4dVersion.objects.all(),
        to_field_name="release",
        empty_label=None,
        label="Version of p4d",
        help_text="The server's own release, or its checkpoint would not fit it.",
    )
    directory = forms.CharField(
        max_length=255,
        widget=CodeInput,
        help_text="On that host, where its uid may write. Back it up: Cloneyard "
        "copies it nowhere.",
    )
    keep_daily = forms.IntegerField(
        min_value=1,
        max_value=MOST_DAYS,
        label="Days kept",
        help_text="The newest proven one of each day, for this many days.",
    )
    keep_weekly = forms.IntegerField(
        min_value=0,
        max_value=MOST_WEEKS,
        label="Weeks kept",
        help_text="Likewise of each week. The newest proven one always stays.",
    )
    oldest_hours = forms.IntegerField(
        min_value=1,
        max_value=MOST_HOURS,
        label="Maximum age of the newest one, in hours",
        help_text="If the newest proven one is older, administrators are told.",
    )


class CheckpointFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=100, label="Server or path")
    kept = forms.ChoiceField(
        required=False,
        label="Kept",
        choices=[("", "Kept and removed"), ("yes", "Kept"), ("no", "Removed")],
    )


class VerificationFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=100, label="Server or sandbox")
    damage = forms.ChoiceField(
        required=False,
        label="Damage",
        choices=[("", "With and without"), ("yes", "With damage"), ("no", "Without")],
    )


class DamagedFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=100, label="Path")
    status = forms.ChoiceField(
        required=False, choices=[("", "Lost and damaged"), *DamagedFile.Status.choices]
    )
    kind = forms.ChoiceField(
        required=False,
        label="Kind",
        choices=[
            ("", "Revisions and shelved files"),
            ("revisions", "Revisions"),
            ("shelved", "Shelved files"),
        ],
    )
