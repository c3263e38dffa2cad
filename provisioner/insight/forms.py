"""Filters of processes, and the rule for orphans."""

from __future__ import annotations

from django import forms

from provisioner.insight.actions import MOST_COUNTED, MOST_DAYS, MOST_HOURS
from provisioner.insight.client_advice import KINDS
from provisioner.insight.models import Process
from provisioner.insight.programs import LONGEST_NAME, RELEASE
from provisioner.sites.forms import of_any_server
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm


class OrphanRuleForm(AskingForm):
    command_hours = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_HOURS,
        label="Hours after which a command counts",
        help_text="Running or paused. Empty: never.",
    )
    idle_hours = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_HOURS,
        label="Hours after which an idle connection counts",
        help_text="Shown where monitor=2 or more is set. Empty: never.",
    )
    only_gone_hosts = forms.BooleanField(
        required=False,
        label="Only if the client's host is gone",
        help_text="Its name is unknown, or no route leads to it from a worker. A host "
        "that is silent is not gone.",
    )
    is_automatic = forms.BooleanField(
        required=False,
        label="End orphans automatically",
        help_text="Every five minutes, 20 of a server at most. Look at the "
        "preview first.",
    )


class AdviceRuleForm(AskingForm):
    unused_days = forms.IntegerField(
        min_value=1,
        max_value=MOST_DAYS,
        label="Days after which a client counts as unused",
        help_text="Since its Access date. P4V that stays open keeps it fresh.",
    )
    many_files = forms.IntegerField(
        min_value=1,
        max_value=MOST_COUNTED,
        label="Files from which a sync counts as large",
        help_text="Files that the server sent, by its log.",
    )
    many_protections = forms.IntegerField(
        min_value=1,
        max_value=MOST_COUNTED,
        label="Lines from which protections count as long",
    )


class ClientAdviceFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=100, label="Client, owner or host")
    server = of_any_server()
    advice = forms.ChoiceField(
        required=False,
        choices=[("", "All advice"), *((kind.code, kind.title) for kind in KINDS)],
    )


class ProgramReleaseForm(AskingForm):
    program = forms.CharField(
        max_length=LONGEST_NAME,
        label="Program",
        help_text="As the list of programs names it, such as p4 or P4V.",
    )
    minimum = forms.CharField(
        required=False,
        max_length=7,
        label="Minimum release",
        help_text="Such as 2022.1. Older ones count as too old.",
    )
    recommended = forms.CharField(
        required=False,
        max_length=7,
        label="Recommended release",
        help_text="Both empty: nobody is asked to update it.",
    )


class ProgramFilterForm(FilterForm):
    q = forms.CharField(
        required=False, max_length=100, label="Program, release, user or host"
    )
    server = of_any_server()
    program = forms.CharField(required=False, max_length=LONGEST_NAME, label="Program")
    user = forms.CharField(required=False, max_length=200, label="User")
    older_than = forms.RegexField(
        RELEASE,
        required=False,
        label="Older than release",
        error_messages={"invalid": "Write a release as 2024.1."},
    )


class ProcessFilterForm(FilterForm):
    q = forms.CharField(
        required=False, max_length=100, label="User, client, host, program or command"
    )
    server = of_any_server()
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
