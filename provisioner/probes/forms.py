"""Forms of plans, moments and comparisons, and filters of what commands took."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils import timezone

from provisioner.probes.actions import LONGEST_USERNAME, MOST_PEOPLE
from provisioner.probes.commands import LONGEST, MOST
from provisioner.probes.comparing import MOST_DAYS, SOURCES, USUAL_DAYS
from provisioner.probes.models import LONGEST_LABEL, LONGEST_NOTE, Moment
from provisioner.probes.queries import Round
from provisioner.sites.forms import of_any_server
from provisioner.sites.models import PerforceServer
from provisioner.web.filters import FilterForm
from provisioner.web.filters import moment as time_field
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
        help_text=f"One a line, {MOST} at most, without “p4”. Only read-only ones. "
        "Each is compared with itself: a changed line starts over.",
    )


class ProbeTimeFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=100, label="Command or error")
    server = of_any_server()
    since = time_field("Since")
    until = time_field("Until")
    failed = forms.TypedChoiceField(
        required=False,
        coerce="true".__eq__,
        empty_value=None,
        label="Outcome",
        choices=[
            ("", "All outcomes"),
            ("true", "Only errors"),
            ("false", "Only measured"),
        ],
    )
    command = forms.CharField(required=False, max_length=LONGEST, label="Command")


class ProbeRoundFilterForm(FilterForm):
    server = of_any_server()
    since = time_field("Since")
    until = time_field("Until")
    outcome = forms.ChoiceField(
        required=False,
        label="Outcome",
        choices=[
            ("", "All outcomes"),
            (Round.MEASURED, "Measured"),
            (Round.FAILED, "With an error"),
            (Round.GAP, "Gaps"),
        ],
    )


class MomentForm(AskingForm):
    """The time is in the writer's time zone."""

    server = forms.ModelChoiceField(
        PerforceServer.objects.order_by("name"), to_field_name="name"
    )
    label = forms.CharField(
        max_length=LONGEST_LABEL,
        label="What was changed",
        help_text="Such as “Upgraded to 2025.2” or “db.* on NVMe”.",
    )
    at = time_field("When")
    note = forms.CharField(
        required=False,
        max_length=LONGEST_NOTE,
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["at"].required = True
        _say_zone(self.fields["at"])


class ComparisonForm(AskingForm):
    """Two periods: beside a moment, or given. Times are in the reader's time zone."""

    what = forms.ChoiceField(
        choices=[(source.code, source.title) for source in SOURCES], required=False
    )
    moment = forms.ModelChoiceField(
        Moment.objects.select_related("server"),
        required=False,
        empty_label="None: the times below",
    )
    days = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_DAYS,
        label="Days before and after it",
        help_text=f"Empty: {USUAL_DAYS}. Whole weeks compare like with like.",
    )
    server = forms.ModelChoiceField(
        PerforceServer.objects.order_by("name"),
        required=False,
        to_field_name="name",
        empty_label="That of the moment",
    )
    before_since = time_field("Before: from")
    before_until = time_field("Before: until")
    after_since = time_field("After: from")
    after_until = time_field("After: until")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            if name.endswith(("_since", "_until")):
                _say_zone(field)

    def arguments(self) -> dict[str, Any]:
        """Return what was given; the rest is the action's."""
        return {
            name: value
            for name, value in self.cleaned_data.items()
            if value not in ("", None)
        }


class ReportMailForm(AskingForm):
    people = forms.CharField(
        max_length=MOST_PEOPLE * LONGEST_USERNAME,
        label="People",
        help_text=f"Usernames of Cloneyard, {MOST_PEOPLE} at most. The mail has the "
        "numbers above.",
        widget=forms.TextInput(
            attrs={
                "autocomplete": "off",
                "autocapitalize": "none",
                "spellcheck": "false",
            }
        ),
    )


def _say_zone(field: forms.Field) -> None:
    field.label = f"{field.label} ({timezone.get_current_timezone()})"
