"""Forms for warm pools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.forms import model_to_dict

from provisioner.accounts.models import User
from provisioner.catalog.forms.choices import TemplateChoiceField
from provisioner.catalog.models import Template
from provisioner.pools.models import Pool
from provisioner.sites.models import Site
from provisioner.web.forms import AskingForm, LinesField, SpanField
from provisioner.workspaces.models import Workspace

MACHINES_SUGGESTED = 50


class PoolChangeForm(AskingForm):
    size = forms.IntegerField(
        min_value=0,
        label="Size",
        help_text="The number of members outside the windows below.",
    )
    windows = LinesField(
        rows=4,
        required=False,
        label="Schedule",
        help_text="One per line, such as mon-fri 07:00-19:00 20: days, times in UTC, "
        "and a size. The first match applies.",
    )
    max_age_seconds = SpanField(
        max_length=60,
        label="Longest age",
        help_text="After that a member is replaced, such as 24 h.",
    )
    idle_seconds = SpanField(
        required=False,
        max_length=60,
        label="Halved after idle",
        help_text="Such as 2 d: halved after that, halved again after twice as long. "
        "Empty: never.",
    )

    @staticmethod
    def initial_of(pool: Pool) -> dict[str, Any]:
        """Return the initial values of the form for a pool."""
        names = ("size", "max_age_seconds", "idle_seconds")
        return {**model_to_dict(pool, names), "windows": "\n".join(pool.windows)}

    def clean_windows(self) -> list[str]:
        lines: str = self.cleaned_data["windows"]
        return lines.splitlines()


class PoolCreateForm(PoolChangeForm):
    template = TemplateChoiceField(queryset=Template.objects.order_by("name"))
    site = forms.ModelChoiceField(
        queryset=Site.objects.order_by("name"),
        required=False,
        empty_label="The template's site",
        help_text="Requests for this site are answered from the pool. A mirror of the "
        "template has to be there.",
    )
    purpose = forms.ChoiceField(
        choices=Workspace.Purpose.choices, initial=Workspace.Purpose.CI
    )
    owner = forms.ModelChoiceField(
        queryset=User.objects.filter(is_active=True, uid__isnull=False),
        to_field_name="username",
        label="Account",
        help_text="Its requests are answered from the pool, and members have its uid.",
        widget=forms.TextInput(attrs={"list": "accounts", "autocomplete": "off"}),
        error_messages={
            "invalid_choice": "There is no account with this name and a uid."
        },
    )

    def machines(self) -> Iterable[str]:
        """Return the first service accounts by name, as pools are usually for these."""
        machines = User.objects.filter(
            is_active=True, is_service=True, uid__isnull=False
        )
        names = machines.order_by("username").values_list("username", flat=True)
        return names[:MACHINES_SUGGESTED]
