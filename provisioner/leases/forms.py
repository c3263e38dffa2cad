"""Forms for leases."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django import forms
from django.http import QueryDict

from provisioner.catalog.forms.choices import TemplateChoiceField
from provisioner.catalog.models import Template
from provisioner.lib.refusals import ActionRefused
from provisioner.lib.spans import parse_span, span_text
from provisioner.web.filters import SearchForm
from provisioner.web.forms import AskingForm, EndField, SpanField
from provisioner.workspaces.models import Workspace


class SpansField(forms.CharField):
    """Several durations, separated by commas."""

    def prepare_value(self, value: Any) -> Any:
        return (
            value if isinstance(value, str) else ", ".join(map(span_text, value or ()))
        )

    def clean(self, value: Any) -> Any:
        parts = [part for part in super().clean(value).split(",") if part.strip()]
        try:
            return [parse_span(part) for part in parts]
        except ValueError as error:
            raise forms.ValidationError(
                "Enter times such as 7 d, 1 d, separated by commas."
            ) from error


def extension_to(end: dt.timedelta | dt.datetime | None) -> dict[str, Any]:
    """Return the end of a lease as `workspace_extend` takes it."""
    if isinstance(end, dt.timedelta):
        return {"seconds": int(end.total_seconds())}
    return {"until": end}


class LeaseExtendForm(AskingForm):
    """Empty for the default; otherwise how long from now, or until which day."""

    span = EndField(
        label="New lease length, or its last day", empty="the default length"
    )

    def arguments(self) -> dict[str, Any]:
        return extension_to(self.cleaned_data["span"])

    def refuse(self, refusal: ActionRefused) -> None:
        """Show a refusal at its field."""
        self.is_refused = True
        self.add_error("span", refusal.sentence)


class LeaseKeepForm(AskingForm):
    reason = forms.CharField(
        max_length=500,
        label="Why is it kept?",
        help_text="Others read it when they look for workspaces to retire.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class LeasePolicyForm(AskingForm):
    """A policy with the seal of the preview that was shown, if one was."""

    template = TemplateChoiceField(
        required=False,
        queryset=Template.objects.order_by("name"),
        empty_label="All templates without a policy of their own",
    )
    purpose = forms.ChoiceField(choices=Workspace.Purpose.choices)
    default_seconds = SpanField(
        required=False,
        max_length=60,
        label="Lease of a new workspace",
        help_text="Such as 30 d. Empty: leases do not end by themselves.",
    )
    maximum_seconds = SpanField(
        required=False,
        max_length=60,
        label="Maximum lease at a time",
        help_text="How far from now an extension can reach. Empty: no limit.",
    )
    warn_seconds = SpansField(
        required=False,
        max_length=300,
        label="Mails before the end",
        help_text="Such as 7 d, 1 d. Empty: none.",
    )
    trash_seconds = SpanField(
        max_length=60,
        label="Time in the trash",
        help_text="How long it can be restored, such as 72 h. 0 s: not at all.",
    )
    seal = forms.CharField(required=False, max_length=24, widget=forms.HiddenInput)

    def policy(self) -> dict[str, Any]:
        """Return the requested policy, without the seal."""
        return {
            name: value for name, value in self.cleaned_data.items() if name != "seal"
        }

    def sealed(self, seal: str) -> None:
        """Put the seal of the shown preview into the form."""
        assert isinstance(self.data, QueryDict)
        data = self.data.copy()
        data["seal"] = seal
        self.data = data


class AbandonedFilterForm(SearchForm):
    """Filters of abandoned workspaces."""

    q = forms.CharField(required=False, max_length=100, label="Name, owner or template")
