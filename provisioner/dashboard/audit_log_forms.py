"""Filters of the audit log."""

from __future__ import annotations

from typing import Any

from django import forms

from provisioner.web.filters import FilterForm, _moment


class TrailFilterForm(FilterForm):
    """Filters of the trail."""

    q = forms.CharField(required=False, max_length=100, label="Text")
    actor = forms.CharField(required=False, max_length=150, label="Who")
    kind = forms.CharField(required=False, max_length=60, label="Kind")
    subject = forms.CharField(required=False, max_length=200, label="About")
    since = _moment("Since")
    until = _moment("Until")

    def criteria(self) -> dict[str, Any]:
        """Return what is asked for, as `events_matching` takes it."""
        self.is_valid()
        cleaned = self.cleaned_data
        return {
            "text": cleaned.get("q", ""),
            "actor": cleaned.get("actor", ""),
            "kind": cleaned.get("kind", ""),
            "subject": cleaned.get("subject", ""),
            "since": cleaned.get("since"),
            "until": cleaned.get("until"),
        }
