"""Forms of routing rules, and the filter of traffic."""

from __future__ import annotations

from django import forms

from provisioner.accounts.models import Team, User
from provisioner.routing.kinds import Purpose
from provisioner.routing.models import AFTER_THE_WAIT
from provisioner.sites.models import PerforceServer, Site, WhenBehind
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm


class RoutingRuleForm(AskingForm):
    """A new rule. The action refuses what cannot work."""

    purpose = forms.ChoiceField(
        choices=[("", "Everything"), *Purpose.choices], required=False
    )
    account = forms.ModelChoiceField(
        queryset=User.objects.all(),
        required=False,
        to_field_name="username",
        help_text="The owner of the workspace or template. Empty: everybody.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"invalid_choice": "There is no account with this name."},
    )
    team = forms.ModelChoiceField(
        queryset=Team.objects.all(), required=False, empty_label="Every team"
    )
    site = forms.ModelChoiceField(
        queryset=Site.objects.order_by("name"),
        required=False,
        empty_label="Every site of the installation",
    )
    server = forms.ModelChoiceField(
        queryset=PerforceServer.objects.order_by("name"),
        help_text="Hosts of workers at the sites must reach it.",
    )
    catch_up_seconds = forms.IntegerField(
        min_value=0,
        initial=300,
        label="Wait for a change, in seconds",
        help_text="A replica that is behind is waited for so long.",
    )
    when_behind = forms.ChoiceField(
        choices=AFTER_THE_WAIT, initial=WhenBehind.WAIT, label="If it stays behind"
    )


class TrafficFilterForm(FilterForm):
    """The filter of traffic: words, a purpose, and days in UTC."""

    q = forms.CharField(required=False, max_length=100, label="Server or account")
    purpose = forms.ChoiceField(
        choices=[("", "Every purpose"), *Purpose.choices], required=False
    )
    since = forms.DateField(
        required=False, label="From", widget=forms.DateInput(attrs={"type": "date"})
    )
    until = forms.DateField(
        required=False, label="To", widget=forms.DateInput(attrs={"type": "date"})
    )
