"""Filters of lists of templates."""

from __future__ import annotations

from django import forms

from provisioner.catalog.models import Template
from provisioner.web.filters import FilterForm


class TemplateFilterForm(FilterForm):
    """Filters of templates."""

    q = forms.CharField(required=False, max_length=100, label="Name or description")
    state = forms.ChoiceField(
        required=False,
        choices=[
            ("", "All states"),
            *(c for c in Template.State.choices if c[0] != Template.State.DELETED),
        ],
    )
    behind = forms.ChoiceField(
        required=False, choices=[("", "Behind or not"), ("1", "Behind")]
    )
    owner = forms.CharField(required=False, max_length=150)
    archived = forms.ChoiceField(
        required=False,
        choices=[("", "Not archived"), ("only", "Archived"), ("all", "All")],
    )
