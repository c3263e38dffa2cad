"""Filters of the audit log."""

from __future__ import annotations

from django import forms

from provisioner.web.filters import FilterForm, moment


class AuditLogFilterForm(FilterForm):
    """Filters of the audit log."""

    q = forms.CharField(required=False, max_length=100, label="Text")
    actor = forms.CharField(required=False, max_length=150, label="Who")
    kind = forms.CharField(required=False, max_length=60, label="Kind")
    subject = forms.CharField(required=False, max_length=200, label="About")
    since = moment("Since")
    until = moment("Until")
