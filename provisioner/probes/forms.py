"""The form of a probe's plan, and filters of what commands took."""

from __future__ import annotations

from django import forms

from provisioner.probes.commands import LONGEST, MOST
from provisioner.sites.models import PerforceServer
from provisioner.web.filters import FilterForm, moment
from provisioner.web.forms import AskingForm, LinesField


class ProbePlanForm(AskingForm):
    is_on = forms.BooleanField(
        required=False,
        label="Time these commands every 15 minutes",
        help_text="Off: what was measured stays, and nothing is added.",
    )
    commands = LinesField(
        rows=6,
        max_length=MOST * LONGEST,
        label="Commands",
        help_text=f"One a line, {MOST} at most, without “p4”. Read-only ones alone. "
        "Each is compared with itself: a changed line begins anew.",
    )


class ProbeTimeFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=100, label="Command or error")
    server = forms.ModelChoiceField(
        PerforceServer.objects.all(),
        required=False,
        to_field_name="name",
        empty_label="All servers",
    )
    since = moment("Since")
    until = moment("Until")
    failed = forms.BooleanField(required=False, label="Errors alone")
