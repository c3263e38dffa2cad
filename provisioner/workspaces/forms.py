"""What people type about a workspace that they have."""

from __future__ import annotations

from typing import Any

from django import forms

from provisioner.catalog.forms.choices import TemplateChoiceField
from provisioner.catalog.models import Template
from provisioner.sites.models import OpenTo
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm
from provisioner.workspaces.models import Unsaved, Workspace
from provisioner.workspaces.queries import GONE


class WorkspaceRetireForm(AskingForm):
    """`unsaved` is there only after somebody was shown what would be lost.

    What could not be compared cannot be rescued either.
    """

    def __init__(
        self, data: Any = None, *, has_unsaved: bool, can_be_rescued: bool
    ) -> None:
        super().__init__(data)
        if not has_unsaved:
            return
        choices = [
            (Unsaved.REFUSE, "Retire it only if all is settled by now"),
            (Unsaved.DISCARD, "Discard what is listed here"),
        ]
        if can_be_rescued:
            choices.insert(0, (Unsaved.RESCUE, "Rescue what is listed here"))
        self.fields["unsaved"] = forms.ChoiceField(
            label="What becomes of it",
            choices=choices,
            initial=choices[0][0],
            widget=forms.RadioSelect,
            required=False,
        )

    def choice(self) -> str:
        return self.cleaned_data.get("unsaved") or Unsaved.REFUSE


class ShareForm(forms.Form):
    """Whom a workspace is shared with."""

    kind = forms.ChoiceField(choices=[("person", "A person"), ("team", "A team")])
    name = forms.CharField(max_length=150)

    def reader(self) -> dict[str, str]:
        """Return who it is, as `workspace_share` takes it."""
        return {self.cleaned_data["kind"]: self.cleaned_data["name"]}


class OpenForm(forms.Form):
    """Who may enter the directory of a workspace."""

    to = forms.ChoiceField(choices=OpenTo.choices)


class WorkspaceFilterForm(FilterForm):
    """Filters of everybody's workspaces."""

    q = forms.CharField(required=False, max_length=100, label="Name or owner")
    state = forms.ChoiceField(
        required=False,
        choices=[("", "All but retired"), *Workspace.State.choices],
    )
    owner = forms.CharField(required=False, max_length=150)
    template = TemplateChoiceField(
        required=False,
        queryset=Template.objects.order_by("name"),
        empty_label="All templates",
    )


class OwnWorkspaceFilterForm(FilterForm):
    """Filters of a person's own workspaces."""

    q = forms.CharField(required=False, max_length=100, label="Name or template")
    state = forms.ChoiceField(
        required=False,
        choices=[
            ("", "All states"),
            *((s.value, s.label) for s in Workspace.State if s not in GONE),
        ],
    )
