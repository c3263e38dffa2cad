"""Forms of splits and ceilings, and filters of snapshots."""

from __future__ import annotations

from django import forms

from provisioner.sites.models import Site
from provisioner.sites.models.ceilings import MOST_IOPS, MOST_MBPS
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm, SizeField

MOST_BYTES = 1 << 60


def some_bytes(size_bytes: int) -> int:
    """Return a size. Raises: ValidationError for nothing, and for what nobody has."""
    if not 0 < size_bytes <= MOST_BYTES:
        raise forms.ValidationError("Write a size from 1 B to 1 EiB.")
    return size_bytes


class SplitPolicyForm(AskingForm):
    owners_may_split = forms.BooleanField(
        required=False,
        label="Owners may split their own workspaces",
        help_text="Otherwise administrators alone.",
    )
    splits_by_itself = forms.BooleanField(
        required=False,
        label="Split by itself what is below",
        help_text="Save the two limits first: the page shows what they would split.",
    )
    older_than_days = forms.IntegerField(
        min_value=1,
        max_value=3660,
        label="Older than so many days",
        help_text="Workspaces that have been ready for so long.",
    )
    pinned_bytes = SizeField(
        label="Snapshots of at least",
        help_text="That the workspace alone holds, such as 100 GiB.",
    )

    def clean_pinned_bytes(self) -> int:
        return some_bytes(self.cleaned_data["pinned_bytes"])


class CeilingForm(AskingForm):
    """The most traffic that volumes of one purpose may cause."""

    max_iops = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_IOPS,
        label="IOPS",
        help_text="Empty: no limit.",
    )
    max_mbps = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_MBPS,
        label="MB/s",
        help_text="Empty: no limit. With both empty, the ceiling is removed.",
    )
    is_shared = forms.BooleanField(
        required=False,
        label="For all volumes together",
        help_text="Otherwise each volume may reach the limits by itself.",
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
        return some_bytes(self.cleaned_data["wanted_bytes"])


class SnapshotFilterForm(FilterForm):
    """Filters of snapshots with what holds them."""

    q = forms.CharField(required=False, max_length=100, label="Template or snapshot")
    site = forms.CharField(required=False, max_length=100, label="Site")
