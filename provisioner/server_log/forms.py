"""Where the log of a server is, and filters of what it told."""

from __future__ import annotations

from typing import Any

from django import forms

from provisioner.accounts.zones import LONGEST_NAME, zones_to_choose
from provisioner.server_log.models import LogMessage, LogSum, ServerLog
from provisioner.server_log.periods import DEFAULT_DAYS, period_of, why_no_time
from provisioner.server_log.polling import DEFAULT_POLLING_ORDER
from provisioner.server_log.tallies import (
    DEFAULT_BY,
    DEFAULT_LOCK_ORDER,
    DEFAULT_ORDER,
    LockBy,
    Whose,
)
from provisioner.sites.forms import of_any_server
from provisioner.sites.models import PerforceServer
from provisioner.web.filters import FilterForm, moment
from provisioner.web.forms import AskingForm, CodeInput

DAYS = [
    (str(DEFAULT_DAYS), "24 hours"),
    ("7", "7 days"),
    ("30", "30 days"),
    ("90", "90 days"),
]


class ServerLogForm(AskingForm):
    is_followed = forms.BooleanField(required=False, label="Read this log as it grows")
    way = forms.ChoiceField(
        choices=ServerLog.Way.choices,
        initial=ServerLog.Way.HOST,
        label="How",
        help_text="p4 logtail needs no worker on the host, but super or operator "
        "access. What is rotated away between two reads is missed.",
    )
    path = forms.CharField(
        max_length=1000,
        required=False,
        widget=CodeInput,
        label="File",
        help_text="P4LOG, with its whole path on the server's host. Rotated files "
        "beside it are read too, compressed by gzip or not. p4 logtail needs no path.",
    )
    time_zone = forms.CharField(
        max_length=LONGEST_NAME,
        initial="UTC",
        label="Time zone",
        help_text="Of the host's clock, since the log does not say.",
        widget=forms.Select(choices=[(name, name) for name in zones_to_choose()]),
    )
    build_users = forms.CharField(
        required=False,
        max_length=2000,
        label="Users of builds",
        help_text="Perforce users, one a line; * is any text. Accounts of machines and "
        "workspaces for CI count as builds anyway. What was already "
        "read does not change.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class LogUploadForm(AskingForm):
    file = forms.FileField(
        label="File",
        help_text="P4LOG, rotated or not, compressed by gzip or not. Of a file that "
        "was read before, only what is new counts. Part of it, cut out, counts again.",
    )

    def arguments(self) -> dict[str, Any]:
        log = self.cleaned_data["file"]
        return {"name": log.name, "reception": log.reception}


class TimesForm(FilterForm):
    """Filters with `since` and `until`."""

    def clean(self) -> dict[str, Any]:
        times = self.cleaned_data
        why = why_no_time(since=times.get("since"), until=times.get("until"))
        for name, sentence in why.items():
            self.add_error(name, sentence)
        return self.cleaned_data


def _days() -> forms.ChoiceField:
    return forms.ChoiceField(required=False, label="In the last", choices=DAYS)


def _process() -> forms.IntegerField:
    return forms.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, label="Process"
    )


class CommandsForm(TimesForm):
    """Filters of what commands did: at which server, when, and whose."""

    server = of_any_server()
    days = _days()
    since = moment("From")
    until = moment("To")
    whose = forms.ChoiceField(required=False, label="Builds", choices=Whose.choices)


class LogCommandFilterForm(CommandsForm):
    field_order = ("q",)

    q = forms.CharField(
        required=False,
        max_length=100,
        label="User, client, host, program or command, whole",
    )
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
    at_least_rows = forms.ChoiceField(
        required=False,
        label="Scanned",
        choices=[
            ("", "Any number of rows"),
            ("1000000", "1 million rows or more"),
            ("10000000", "10 million rows or more"),
        ],
    )
    has_failed = forms.ChoiceField(
        required=False,
        label="Ended",
        choices=[("", "In any way"), ("1", "With an error")],
    )
    command = forms.CharField(required=False, max_length=200, label="Command")
    user = forms.CharField(required=False, max_length=200, label="User")
    client = forms.CharField(required=False, max_length=200, label="Client")
    host = forms.CharField(required=False, max_length=200, label="Host")
    program = forms.CharField(required=False, max_length=500, label="Program")
    pid = _process()


class TableUseFilterForm(CommandsForm):
    table = forms.CharField(required=False, max_length=200, label="Table")
    user = forms.CharField(required=False, max_length=200, label="User")
    command = forms.CharField(required=False, max_length=200, label="Command")


class LogMessageFilterForm(TimesForm):
    server = of_any_server()
    kind = forms.ChoiceField(
        required=False, label="Kind", choices=[("", "All"), *LogMessage.Kind.choices]
    )
    days = _days()
    since = moment("From")
    until = moment("To")
    pid = _process()


class LockWaitsForm(TimesForm):
    server = forms.ModelChoiceField(
        PerforceServer.objects.order_by("name"), to_field_name="name", empty_label=None
    )
    since = moment("From")
    until = moment("To")


class _SumsForm(CommandsForm):
    """Filters of sums; `criteria` returns what those of `tallies` take."""

    def criteria(self) -> dict[str, Any]:
        asked = super().criteria()
        server = asked.pop("server", None)
        times = {name: asked.pop(name, None) for name in ("since", "until")}
        days = int(asked.pop("days", DEFAULT_DAYS))
        return {
            **{
                name: field.initial
                for name, field in self.fields.items()
                if field.initial is not None
            },
            "whose": "",
            **asked,
            "server": server.name if server else "",
            "period": period_of(days=days, **times),
        }


class ServerLoadForm(_SumsForm):
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
            ("over_30s", "30 seconds or more"),
            ("wait_ms", "Waited for locks"),
            ("held_ms", "Held locks"),
            ("cpu_ms", "Processor time"),
            ("sent_mb", "Sent"),
            ("rows_scanned", "Rows scanned"),
            ("most_rows", "Rows scanned by one command"),
            ("failed", "Failed"),
        ],
    )


class LapsesForm(_SumsForm):
    command = forms.CharField(required=False, max_length=200, label="Command")
    user = forms.CharField(required=False, max_length=200, label="User")


class PollingForm(_SumsForm):
    order = forms.ChoiceField(
        required=False,
        label="Most",
        initial=DEFAULT_POLLING_ORDER,
        choices=[
            (DEFAULT_POLLING_ORDER, "Commands"),
            ("hours", "Hours"),
            ("lapse_ms", "Time in all"),
            ("rows_scanned", "Rows scanned"),
        ],
    )


class ServerLocksForm(_SumsForm):
    by = forms.ChoiceField(
        required=False, label="By", choices=LockBy.choices, initial=LockBy.COMMAND.value
    )
    order = forms.ChoiceField(
        required=False,
        label="Most",
        initial=DEFAULT_LOCK_ORDER,
        choices=[
            (DEFAULT_LOCK_ORDER, "Held for writing"),
            ("read_held_ms", "Held for reading"),
            ("longest_held_ms", "Longest held"),
            ("wait_ms", "Waited"),
            ("longest_wait_ms", "Longest wait"),
            ("commands", "Times"),
        ],
    )
