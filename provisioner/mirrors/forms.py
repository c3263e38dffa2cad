"""Forms for mirrors."""

from __future__ import annotations

from typing import Any

from django import forms
from django.forms import model_to_dict

from provisioner.catalog.forms.choices import SnapshotChoiceField, TemplateChoiceField
from provisioner.catalog.models import Snapshot, Template
from provisioner.lib import schedules
from provisioner.mirrors.actions import fitting_sites
from provisioner.mirrors.models import ENDED, MOST_KEPT, Mirror, MirroredSnapshot
from provisioner.mirrors.queries import AVAILABLE, next_to_transfer, remarks_on
from provisioner.sites.models import Site
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm, CodeInput

LARGEST_THROTTLE = 2**31 - 1


class MirrorFilterForm(FilterForm):
    """Filters of mirrors."""

    q = forms.CharField(required=False, max_length=100, label="Template or site")
    state = forms.ChoiceField(
        required=False,
        choices=[
            ("", "All states"),
            *(c for c in Mirror.State.choices if c[0] not in ENDED),
        ],
    )


class MirroredSnapshotFilterForm(FilterForm):
    """Filters of the snapshots of one mirror."""

    q = forms.CharField(required=False, max_length=100, label="Name")
    state = forms.ChoiceField(
        required=False,
        choices=[("", "All states"), *MirroredSnapshot.State.choices],
    )


class MirrorTemplateForm(forms.Form):
    """The template to mirror."""

    template = TemplateChoiceField(
        queryset=Template.objects.filter(archived_at=None).order_by("name")
    )


class MirrorChangeForm(AskingForm):
    start = forms.ChoiceField(
        choices=Mirror.Start.choices,
        label="Transfers start",
        help_text="On request, owners and administrators start each transfer.",
    )
    cron = forms.CharField(
        required=False,
        max_length=schedules.LONGEST,
        label="Schedule",
        help_text="Minute, hour, day, month and day of the week as in cron, in UTC, "
        "such as 0 3 * * mon-fri. Times that were missed are made up for once.",
        widget=CodeInput,
    )
    throttle_kilobytes = forms.IntegerField(
        min_value=0,
        max_value=LARGEST_THROTTLE,
        label="Throttle",
        help_text="The most that a transfer may use, in kB per second. 0: no limit. "
        "It applies from the next transfer on.",
    )

    keep = forms.IntegerField(
        min_value=1,
        max_value=MOST_KEPT,
        label="Snapshots to keep",
        help_text="How many stay at the site, besides those that clones need. It "
        "applies from the next transfer on.",
    )

    @classmethod
    def initial_of(cls, mirror: Mirror) -> dict[str, Any]:
        """Return the initial values of the form for a mirror."""
        return model_to_dict(mirror, cls.base_fields)


class MirrorCreateForm(MirrorChangeForm):
    site = forms.ModelChoiceField(
        queryset=Site.objects.none(),
        label="Site",
        error_messages={"invalid_choice": "The template cannot be mirrored there."},
    )
    aggregate = forms.CharField(
        required=False,
        max_length=255,
        help_text="Where its volume is made, such as aggr2. Empty: the site chooses.",
        widget=CodeInput,
    )
    field_order = ("site", "aggregate", "start", "cron", "throttle_kilobytes", "keep")

    def __init__(self, data: Any = None, *, template: Template) -> None:
        super().__init__(data, initial=self.initial_of(Mirror()))
        sites, self.unfit = fitting_sites(template)
        field = self.fields["site"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Site.objects.filter(pk__in=[site.pk for site in sites])
        self.has_sites = bool(sites)
        self.remarks = remarks_on((template.site, site) for site in sites).values()


class MirrorTransferForm(AskingForm):
    snapshot = SnapshotChoiceField(
        required=False,
        queryset=Snapshot.objects.none(),
        error_messages={
            "invalid_choice": "That snapshot is at the site already, or is no longer "
            "offered. Choose another one."
        },
    )

    def __init__(self, data: Any = None, *, mirror: Mirror) -> None:
        super().__init__(data)
        there = mirror.snapshots.filter(state=AVAILABLE)
        lacking = Snapshot.objects.available().filter(template=mirror.template)
        lacking = lacking.exclude(pk__in=there.values("snapshot"))
        self.usual = next_to_transfer(mirror)
        field = self.fields["snapshot"]
        assert isinstance(field, SnapshotChoiceField)
        field.offer(lacking, usual=self.usual)
        field.required = self.usual is None
        self.has_any = lacking.exists()

    def arguments(self) -> dict[str, Any]:
        return {"snapshot": self.cleaned_data["snapshot"] or self.usual}
