"""Forms of splits, and filters of snapshots."""

from __future__ import annotations

from django import forms

from provisioner.sites.models import Site
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm, SizeField

MOST_BYTES = 1 << 60


class SplitPolicyForm(AskingForm):
    owners_may_split = forms.BooleanField(
        required=False,
        label="Owners may split their own workspaces",
        help_text="Otherwise administrators alone.",
    )


class FreeSpaceForm(AskingForm):
    """How much to free, and where."""

    site = forms.ModelChoiceField(queryset=Site.objects.order_by("name"))
    wanted_bytes = SizeField(label="Free", help_text="Such as 2 TiB or 500 GiB.")
    includes_work = forms.BooleanField(
        required=False,
        label="Include workspaces that may hold unsubmitted work",
        help_text="Unsubmitted work is rescued before they are retired. Otherwise "
        "those workspaces are left out.",
    )

    def clean_wanted_bytes(self) -> int:
        wanted: int = self.cleaned_data["wanted_bytes"]
        if not 0 < wanted <= MOST_BYTES:
            raise forms.ValidationError("Write a size from 1 B to 1 EiB.")
        return wanted


class SnapshotFilterForm(FilterForm):
    """Filters of snapshots with what holds them."""

    q = forms.CharField(required=False, max_length=100, label="Template or snapshot")
    site = forms.CharField(required=False, max_length=100, label="Site")
