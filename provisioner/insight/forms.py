"""Filters of processes."""

from __future__ import annotations

from django import forms

from provisioner.insight.models import Process
from provisioner.sites.models import PerforceServer
from provisioner.web.filters import FilterForm


class ProcessFilterForm(FilterForm):
    q = forms.CharField(
        required=False, max_length=100, label="User, client, host, program or command"
    )
    server = forms.ModelChoiceField(
        PerforceServer.objects.all(),
        required=False,
        to_field_name="name",
        empty_label="All servers",
    )
    state = forms.ChoiceField(
        required=False, choices=[("", "All states"), *Process.State.choices]
    )
    at_least = forms.ChoiceField(
        required=False,
        label="Since",
        choices=[
            ("", "Any time"),
            ("60", "A minute ago"),
            ("600", "10 minutes ago"),
            ("3600", "An hour ago"),
            ("86400", "A day ago"),
        ],
    )
