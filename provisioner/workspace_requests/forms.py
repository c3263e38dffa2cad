"""The form of a workspace request."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django import forms
from django.db.models import Q

from provisioner.accounts.models import User
from provisioner.catalog.forms.choices import SnapshotChoiceField
from provisioner.catalog.models import Snapshot, Template
from provisioner.leases.refusals import LeaseTooLong
from provisioner.lib.refusals import ActionRefused
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.queries import OnItsWay, default_at, mirror_sites, on_their_way
from provisioner.mirrors.refusals import NothingAtSite, SnapshotNotAtSite
from provisioner.sites.availability import why_away
from provisioner.sites.models import Site
from provisioner.web.forms import AskingForm, NameField
from provisioner.workspace_requests.site_choice import site_for
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.purposes import unsupported_purposes
from provisioner.workspaces.refusals import RequestKeyReused

SECONDS_A_DAY = 24 * 3600


# What no policy allows; it keeps dates that nobody could write out of the domain.
LONGEST_LEASE_DAYS = 3650


PURPOSES = {
    Workspace.Purpose.DEVELOPMENT: (
        "Development",
        "With a Perforce client of your own: edit, submit, sync.",
    ),
    Workspace.Purpose.BUILD: (
        "Build only",
        "Only the files, without a Perforce client. Nothing on the Perforce server "
        "changes.",
    ),
    Workspace.Purpose.CI: (
        "CI",
        "With a read-only client: sync and look things up. Leftover files are deleted.",
    ),
    Workspace.Purpose.CI_EDIT: (
        "CI that submits",
        "Short-lived client; no load for others.",
    ),
}


class SiteChoiceField(forms.ModelChoiceField[Site]):
    """A choice among the sites of a template, with what is to be had at each."""

    template: Template

    def offer(self, template: Template, *, usual: Site) -> None:
        """Offer the sites of a template that have snapshots."""
        self.template = template
        there = Q(pk=template.site_id) | Q(pk__in=mirror_sites(template).values("pk"))
        sites = Site.objects.filter(there).select_related("capacity")
        self.queryset = sites.order_by("name")
        self.empty_label = f"Your site: {self.label_from_instance(usual)}"

    def label_from_instance(self, obj: Site) -> str:
        default = default_at(self.template, obj)
        said = f"{obj.name}, no snapshot yet"
        if default is not None:
            said = f"{obj.name}, change {default.change} {default.mark.lower()}"
        if why_away(obj, getattr(obj, "capacity", None)):
            said += ", does not work at the moment"
        coming = self._coming.get(obj.pk)
        return said if coming is None else f"{said}; {coming.text()}"

    @cached_property
    def _coming(self) -> dict[int, OnItsWay]:
        """What is being transferred, by the site's id."""
        coming = on_their_way(Mirror.objects.filter(template=self.template))
        return {each.mirrored.mirror.site_id: each for each in coming.values()}


class WorkspaceCreateForm(AskingForm):
    """Every field has a default, so a button alone can submit it."""

    name = NameField(required=False)
    purpose = forms.ChoiceField(
        required=False, choices=Workspace.Purpose.choices, widget=forms.RadioSelect
    )
    site = SiteChoiceField(required=False, queryset=Site.objects.none())
    snapshot = SnapshotChoiceField(required=False, queryset=Snapshot.objects.none())
    quality = forms.ChoiceField(
        required=False,
        label="At least",
        choices=[
            ("", "The template's setting"),
            *Template.WantedQuality.choices,
        ],
    )
    wants_reconcile = forms.BooleanField(
        required=False, label="Compare the files with the depot"
    )
    lease_days = forms.IntegerField(
        required=False, min_value=1, max_value=LONGEST_LEASE_DAYS
    )
    request_key = forms.CharField(
        required=False, max_length=200, widget=forms.HiddenInput
    )

    def __init__(self, data: Any = None, *, template: Template, by: User) -> None:
        super().__init__(data, initial={"purpose": Workspace.Purpose.DEVELOPMENT})
        snapshots = Snapshot.objects.available().filter(template=template)
        sites = self.fields["site"]
        assert isinstance(sites, SiteChoiceField)
        self.usual = usual = site_for(by=by, template=template)
        self._why_not = unsupported_purposes(usual, owner=by)
        sites.offer(template, usual=usual)
        self.has_sites = mirror_sites(template).exists()
        field = self.fields["snapshot"]
        assert isinstance(field, SnapshotChoiceField)
        field.offer(snapshots, usual=default_at(template, usual))
        field.error_messages["invalid_choice"] = (
            "That snapshot no longer exists. Choose a newer one."
        )

    @property
    def purposes(self) -> list[dict[str, Any]]:
        """Purposes to choose from, each with the reason if it is not available."""
        chosen = self["purpose"].value() or Workspace.Purpose.DEVELOPMENT
        return [
            {
                "value": purpose.value,
                "label": label,
                "help": text,
                "why_not": self._why_not.get(purpose, ""),
                "is_chosen": purpose == chosen,
            }
            for purpose, (label, text) in PURPOSES.items()
        ]

    def clean(self) -> dict[str, Any]:
        """Return the lease in seconds; None: the default."""
        cleaned = super().clean() or self.cleaned_data
        days = cleaned.pop("lease_days", None)
        return {**cleaned, "lease_seconds": days and days * SECONDS_A_DAY}

    def clean_purpose(self) -> str:
        return self.cleaned_data["purpose"] or Workspace.Purpose.DEVELOPMENT

    def refuse(self, refusal: ActionRefused) -> None:
        super().refuse(refusal)
        if isinstance(refusal, LeaseTooLong):
            self.errors.clear()
            self.add_error("lease_days", refusal.sentence)
        if isinstance(refusal, (NothingAtSite, SnapshotNotAtSite)):
            self.errors.clear()
            self.add_error("site", refusal.sentence)
        if isinstance(refusal, RequestKeyReused):
            # Somebody went back to a form that had worked; the page has a new key now.
            self.errors.clear()
            self.add_error(
                None,
                "You already got a workspace with this form. Submit it again to get "
                "another one.",
            )
