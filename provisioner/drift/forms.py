"""Filters of lists of findings."""

from __future__ import annotations

from django import forms

from provisioner.drift.models import Finding
from provisioner.web.filters import FilterForm


class FindingFilterForm(FilterForm):
    """Filters of findings."""

    q = forms.CharField(required=False, max_length=100, label="Words")
    kind = forms.ChoiceField(
        required=False, choices=[("", "All kinds"), *Finding.Kind.choices]
    )
    state = forms.ChoiceField(
        required=False, choices=[("", "Open"), ("resolved", "Resolved")]
    )
