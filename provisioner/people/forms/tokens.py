"""The form of a new API token."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from provisioner.accounts.models import User
from provisioner.accounts.permissions import can_administer
from provisioner.accounts.tokens import longest_days
from provisioner.catalog.forms.choices import TemplatesChoiceField
from provisioner.catalog.models import Template
from provisioner.catalog.queries import templates_to_choose_from
from provisioner.people.actions.tokens import LONGEST_NAME, MOST_WORKSPACES
from provisioner.web.forms import AskingForm, SpanField
from provisioner.workspaces.models import Workspace


class TokenForm(AskingForm):
    """All fields but the name restrict the token, unless they are empty."""

    name = forms.CharField(
        required=False,
        max_length=LONGEST_NAME,
        label="What is it for?",
        help_text="Such as nightly build on ci-7, to recognize it later.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    days = forms.IntegerField(min_value=1, label="For how many days")
    templates = TemplatesChoiceField(
        required=False,
        queryset=Template.objects.none(),
        label="Templates",
        help_text="The templates that it may use; none chosen: all.",
    )
    purposes = forms.MultipleChoiceField(
        required=False,
        choices=Workspace.Purpose.choices,
        label="Purposes",
        help_text="Their allowed purposes; none chosen: all.",
        widget=forms.CheckboxSelectMultiple,
    )
    max_lease_seconds = SpanField(
        required=False,
        max_length=40,
        label="Longest lease",
        help_text="Such as 4 h: how far from now its workspaces may live.",
    )
    max_workspaces = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_WORKSPACES,
        label="Workspaces at a time",
    )
    reads_mounts = forms.BooleanField(
        required=False,
        label="Only reads mounts",
        help_text="For hosts with an automounter: it reads where everybody's "
        "workspaces are mounted from, and nothing else.",
    )

    @property
    def bounds(self) -> list[forms.BoundField]:
        """The fields that are shown as checkboxes."""
        return [self["templates"], self["purposes"]]

    def __init__(self, data: Any = None, *, user: User) -> None:
        super().__init__(data, initial={"days": settings.API_TOKEN_DAYS})
        templates = self.fields["templates"]
        assert isinstance(templates, forms.ModelMultipleChoiceField)
        templates.queryset = templates_to_choose_from(user).order_by("name")
        if not can_administer(user):
            del self.fields["reads_mounts"]
        days = self.fields["days"]
        days.widget.attrs["max"] = longest_days()
