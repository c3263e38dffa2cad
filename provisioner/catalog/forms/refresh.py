"""Forms for refresh policies."""

from __future__ import annotations

from django import forms

from provisioner.catalog.models import RefreshPolicy
from provisioner.sites.models import PerforceServer
from provisioner.web.forms import AskingForm, CodeInput, SpanField


class RefreshPolicyForm(AskingForm):
    mode = forms.ChoiceField(
        choices=RefreshPolicy.Mode.choices, label="When is it built?"
    )
    quiet_seconds = SpanField(
        max_length=60,
        label="Wait until no submits for",
        help_text="After changes: how long nothing in its view was submitted. Such as "
        "2 min.",
    )
    every_seconds = SpanField(
        max_length=60,
        label="At most once every",
        help_text="After changes: the minimum time between builds, such as 30 min.",
    )
    cron = forms.CharField(
        required=False,
        max_length=100,
        label="Schedule",
        help_text="Minute, hour, day, month and day of the week as in cron, in UTC, "
        "such as 0 3 * * mon-fri.",
        widget=CodeInput,
    )
    clean_cron = forms.CharField(
        required=False,
        max_length=100,
        label="Schedule of clean builds",
        help_text="As above. Files that are not in Perforce are removed first, so "
        "that no stale file affects the build. Empty: only on request.",
        widget=CodeInput,
    )
    unused_days = forms.IntegerField(
        required=False,
        min_value=1,
        label="Stop after days without use",
        help_text="Not built automatically if nobody requested a workspace or a "
        "build of it for that long. Empty: never stops.",
    )
    is_paused = forms.BooleanField(required=False, label="Paused")


class RefreshPauseForm(AskingForm):
    """The switch to turn: a server's, or the global one."""

    server = forms.ModelChoiceField(
        required=False, queryset=PerforceServer.objects.order_by("name")
    )
    do = forms.ChoiceField(choices=[(word, word) for word in ("pause", "resume")])
