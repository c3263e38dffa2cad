"""The form of a deduplication plan, and filters of runs and of savings."""

from __future__ import annotations

from django import forms

from provisioner.efficiency.models import DedupeRun, ReductionDay
from provisioner.lib import schedules
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm, CodeInput, LinesField


class DedupePlanForm(AskingForm):
    is_on = forms.BooleanField(
        required=False,
        label="Deduplicate by this plan",
        help_text="Off: what runs is stopped within a minute.",
    )
    covers_templates = forms.BooleanField(
        required=False,
        label="Volumes of templates",
        help_text="Snapshots keep blocks as they were: what is shared counts from the "
        "next build on.",
    )
    covers_mirrors = forms.BooleanField(
        required=False,
        label="Volumes of mirrors",
        help_text="SnapMirror keeps what is shared at the template's home. ONTAP may "
        "refuse it for them.",
    )
    more_volumes = LinesField(
        rows=3,
        required=False,
        max_length=40_000,
        label="Further volumes",
        help_text="Names in the SVM, one a line, such as those of depots. "
        "Clones are left out.",
    )
    cron = forms.CharField(
        max_length=schedules.LONGEST,
        widget=CodeInput,
        label="Windows begin at",
        help_text="As in cron, in UTC: minute, hour, day, month, day of the week.",
    )
    minutes = forms.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        label="Minutes of a window",
        help_text="What still runs at its end is stopped, and goes "
        "first in the next one.",
    )
    waits_for_quiet = forms.BooleanField(
        required=False,
        label="Only while the site is quiet",
        help_text="While no template is built and no request waits. Otherwise a policy "
        "of ONTAP runs the plan, if it has the schedule and the "
        "window is of whole hours.",
    )


class DedupeRunFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=100, label="Volume")
    site = forms.CharField(required=False, max_length=100, label="Site")
    state = forms.ChoiceField(
        required=False, choices=[("", "All states"), *DedupeRun.State.choices]
    )


class ReductionFilterForm(FilterForm):
    q = forms.CharField(
        required=False, max_length=100, label="Site, template or volume"
    )
    site = forms.CharField(required=False, max_length=100, label="Site")
    kind = forms.ChoiceField(
        required=False,
        label="Kind",
        choices=[
            ("", "Sites, templates and volumes"),
            *ReductionDay.Kind.choices,
        ],
    )
    day = forms.DateField(
        required=False,
        label="Day (UTC)",
        widget=forms.DateInput({"type": "date"}),
    )
