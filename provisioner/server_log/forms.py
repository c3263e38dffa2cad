"""Where the log of a server is, and filters of what it told."""

from __future__ import annotations

from typing import Any

from django import forms

from provisioner.accounts.zones import LONGEST_NAME, zones_to_choose
from provisioner.server_log.models import LogSum
from provisioner.server_log.queries import DEFAULT_DAYS
from provisioner.server_log.tallies import DEFAULT_BY, DEFAULT_ORDER
from provisioner.sites.models import PerforceServer
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm, CodeInput

DAYS = [
    (str(DEFAULT_DAYS), "24 hours"),
    ("7", "7 days"),
    ("30", "30 days"),
    ("90", "90 days"),
]


class ServerLogForm(AskingForm):
    is_followed = forms.BooleanField(
        required=False,
        label="Read this log as it grows",
        help_text="By the worker on the server's host.",
    )
    path = forms.CharField(
        max_length=1000,
        widget=CodeInput,
        label="File",
        help_text="P4LOG, with its whole path on the server's host. Rotated files "
        "beside it are read too, compressed by gzip or not.",
    )
    time_zone = forms.CharField(
        max_length=LONGEST_NAME,
        initial="UTC",
        label="Time zone",
        help_text="Of the host's clock: the log does not say it.",
        widget=forms.Select(choices=[(name, name) for name in zones_to_choose()]),
    )


class LogCommandFilterForm(FilterForm):
    q = forms.CharField(
        required=False, max_length=100, label="User, client, host, program or command"
    )
    server = forms.ModelChoiceField(
        PerforceServer.objects.all(),
        required=False,
        to_field_name="name",
        empty_label="All servers",
    )
    days = forms.ChoiceField(required=False, label="In the last", choices=DAYS)
    at_least = forms.ChoiceField(
        required=False,
        label="Took",
        choices=[
            ("", "Any time"),
            ("1", "A second or more"),
            ("10", "10 seconds or more"),
            ("30", "30 seconds or more"),
            ("60", "60 seconds or more"),
            ("120", "120 seconds or more"),
        ],
    )
    command = forms.CharField(required=False, max_length=200, label="Command")
    user = forms.CharField(required=False, max_length=200, label="User")
    client = forms.CharField(required=False, max_length=200, label="Client")
    host = forms.CharField(required=False, max_length=200, label="Host")
    program = forms.CharField(required=False, max_length=500, label="Program")


class ServerLoadForm(FilterForm):
    server = forms.ModelChoiceField(
        PerforceServer.objects.all(),
        required=False,
        to_field_name="name",
        empty_label="All servers",
    )
    days = forms.ChoiceField(required=False, label="In the last", choices=DAYS)
    by = forms.ChoiceField(
        required=False, label="By", choices=LogSum.By.choices, initial=DEFAULT_BY
    )
    order = forms.ChoiceField(
        required=False,
        label="Most",
        initial=DEFAULT_ORDER,
        choices=[
            (DEFAULT_ORDER, "Time in all"),
            ("longest_ms", "Longest"),
            ("commands", "Commands"),
            ("over_30s", "Over 30 seconds"),
            ("wait_ms", "Waited for locks"),
            ("held_ms", "Held locks"),
            ("cpu_ms", "Processor time"),
            ("sent_mb", "Sent"),
            ("failed", "Failed"),
        ],
    )

    def criteria(self) -> dict[str, Any]:
        """Return what `tallies` takes."""
        asked = super().criteria()
        server = asked.get("server")
        return {
            "by": asked.get("by", DEFAULT_BY),
            "order": asked.get("order", DEFAULT_ORDER),
            "days": int(asked.get("days", DEFAULT_DAYS)),
            "server": server.name if server else "",
        }
