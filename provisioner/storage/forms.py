"""Forms of splits and ceilings, and filters of snapshots."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db import models

from provisioner.catalog.models import VolumePolicy
from provisioner.catalog.models.volume_policies import (
    MOST_AUTOSIZE_PERCENT,
    MOST_GROWTH_PERCENT,
    MOST_HEADROOM_PERCENT,
    MOST_INODES,
    MOST_RESERVE_PERCENT,
)
from provisioner.catalog.volume_policies import MAX_GROWTH_PERCENT
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
        help_text="Otherwise only administrators.",
    )
    splits_by_itself = forms.BooleanField(
        required=False,
        label="Split by itself what is below",
        help_text="Save the two limits first: the page shows what they would split.",
    )
    older_than_days = forms.IntegerField(
        min_value=1,
        max_value=3660,
        label="Older than this many days",
        help_text="Workspaces that have been ready for at least this long.",
    )
    pinned_bytes = SizeField(
        label="Snapshots of at least",
        help_text="That only the workspace holds, such as 100 GiB.",
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


def _choices(kinds: type[models.Choices]) -> list[tuple[Any, str]]:
    """Return the choices of a setting that may stay as it is."""
    return [("", "As it is"), *kinds.choices]


class VolumePolicyForm(AskingForm):
    """How the volumes of templates grow, and what they set apart."""

    autosize_mode = forms.ChoiceField(
        required=False,
        choices=_choices(VolumePolicy.Autosize),
        label="Autosize",
        help_text="ONTAP grows a volume that fills up, and may shrink it again.",
    )
    autosize_max_percent = forms.IntegerField(
        required=False,
        min_value=101,
        max_value=MOST_AUTOSIZE_PERCENT,
        label="Grow up to, in percent of its size",
        help_text="Empty: what ONTAP chooses, such as 120.",
    )
    snapshot_reserve_percent = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_RESERVE_PERCENT,
        label="Snapshot reserve, in percent",
        help_text="New volumes have 0. It is part of the size.",
    )
    guarantee = forms.ChoiceField(
        required=False,
        choices=_choices(VolumePolicy.Guarantee),
        label="Space guarantee",
        help_text="Thick volumes, and their clones, take their whole "
        "size from the aggregate.",
    )
    fractional_reserve = forms.TypedChoiceField(
        required=False,
        choices=_choices(VolumePolicy.FractionalReserve),
        coerce=int,
        empty_value=None,
        label="Fractional reserve",
        help_text="For files and LUNs with reserved space. Workspaces need none.",
    )
    security_style = forms.ChoiceField(
        required=False,
        choices=_choices(VolumePolicy.SecurityStyle),
        label="Security style",
        help_text="Workers and hosts mount over NFS, which UNIX fits.",
    )
    min_inodes = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_INODES,
        label="Minimum inodes",
        help_text="At most one for each 4 KB is possible. Builds raise it for the "
        "files of the view. Where nothing is set ONTAP gives one for each 32 KB.",
    )
    headroom_percent = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_HEADROOM_PERCENT,
        label="Headroom of new clones for development, in percent",
        help_text="How much larger they are than their template. It takes no space.",
    )
    build_headroom_percent = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_HEADROOM_PERCENT,
        label="Headroom of new clones for builds and CI, in percent",
        help_text="Where nothing is set they have the size of their template.",
    )
    clone_grow_percent = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_GROWTH_PERCENT,
        label="Full clones for development grow by, in percent",
        help_text="When they are 95 % full. Their owners are told. With 0, and where "
        "nothing is set, they do not grow.",
    )
    clone_grow_max_percent = forms.IntegerField(
        required=False,
        min_value=101,
        max_value=MOST_AUTOSIZE_PERCENT,
        label="Clones grow up to, in percent of their template",
        help_text=f"Where nothing is set: {MAX_GROWTH_PERCENT}.",
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
