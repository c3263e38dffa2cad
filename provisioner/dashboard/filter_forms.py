"""Filters of lists: their state is the address, and what makes no sense is left out."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils import timezone

from provisioner.bisect.models import Bisection
from provisioner.catalog.models import Template
from provisioner.dashboard.forms import TemplateChoiceField
from provisioner.drift.models import Finding
from provisioner.engine.models import Operation
from provisioner.web.selects import lean_selects
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import GONE


class FilterForm(forms.Form):
    """A list's filters, as the address has them; times are in the reader's zone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        lean_selects(self)
        for field in self.fields.values():
            if isinstance(field, forms.DateTimeField):
                field.label = f"{field.label} ({timezone.get_current_timezone()})"

    def criteria(self) -> dict[str, Any]:
        """Return what is asked for, as the query of the list takes it."""
        raise NotImplementedError


class SearchForm(FilterForm):
    """Words to look for, and nothing else."""

    q = forms.CharField(required=False, max_length=100, label="Words")

    def criteria(self) -> dict[str, Any]:
        """Return what is asked for: `text`."""
        self.is_valid()
        return {"text": self.cleaned_data.get("q", "")}


def _moment(label: str) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"})
    return forms.DateTimeField(required=False, label=label, widget=widget)


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

    def criteria(self) -> dict[str, Any]:
        """Return what is asked for, as `workspaces_matching` takes it."""
        self.is_valid()
        template = self.cleaned_data.get("template")
        return {
            "text": self.cleaned_data.get("q", "").strip(),
            "state": self.cleaned_data.get("state", ""),
            "owner": self.cleaned_data.get("owner", "").strip(),
            "template": template.pk if template else None,
        }


class TemplateFilterForm(FilterForm):
    """Filters of templates."""

    q = forms.CharField(required=False, max_length=100, label="Name or description")
    state = forms.ChoiceField(
        required=False, choices=[("", "All states"), *Template.State.choices]
    )

    def criteria(self) -> dict[str, Any]:
        """Return what is asked for, as `templates_matching` takes it."""
        self.is_valid()
        return {
            "text": self.cleaned_data.get("q", ""),
            "state": self.cleaned_data.get("state", ""),
        }


class AbandonedFilterForm(SearchForm):
    """What is looked for among what looks abandoned."""

    q = forms.CharField(required=False, max_length=100, label="Name, owner or template")


class BisectionFilterForm(FilterForm):
    """Filters of bisections."""

    q = forms.CharField(required=False, max_length=100, label="Template or owner")
    state = forms.ChoiceField(
        required=False, choices=[("", "All states"), *Bisection.State.choices]
    )

    def criteria(self) -> dict[str, Any]:
        """Return what is asked for, as `bisections_matching` takes it."""
        self.is_valid()
        return {
            "text": self.cleaned_data.get("q", ""),
            "state": self.cleaned_data.get("state", ""),
        }


class FindingFilterForm(FilterForm):
    """Filters of what an audit found."""

    q = forms.CharField(required=False, max_length=100, label="Words")
    kind = forms.ChoiceField(
        required=False, choices=[("", "All kinds"), *Finding.Kind.choices]
    )
    state = forms.ChoiceField(
        required=False, choices=[("", "Open"), ("resolved", "Resolved")]
    )

    def criteria(self) -> dict[str, Any]:
        """Return what is asked for, as `findings_matching` takes it."""
        self.is_valid()
        return {
            "text": self.cleaned_data.get("q", ""),
            "kind": self.cleaned_data.get("kind", ""),
            "is_resolved": self.cleaned_data.get("state", "") == "resolved",
        }


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

    def criteria(self) -> dict[str, Any]:
        """Return what is asked for, as `own_workspaces_matching` takes it."""
        self.is_valid()
        return {
            "text": self.cleaned_data.get("q", ""),
            "state": self.cleaned_data.get("state", ""),
        }


class TrailFilterForm(FilterForm):
    """Filters of the trail."""

    q = forms.CharField(required=False, max_length=100, label="Text")
    actor = forms.CharField(required=False, max_length=150, label="Who")
    kind = forms.CharField(required=False, max_length=60, label="Kind")
    subject = forms.CharField(required=False, max_length=200, label="About")
    since = _moment("Since")
    until = _moment("Until")

    def criteria(self) -> dict[str, Any]:
        """Return what is asked for, as `events_matching` takes it."""
        self.is_valid()
        cleaned = self.cleaned_data
        return {
            "text": cleaned.get("q", ""),
            "actor": cleaned.get("actor", ""),
            "kind": cleaned.get("kind", ""),
            "subject": cleaned.get("subject", ""),
            "since": cleaned.get("since"),
            "until": cleaned.get("until"),
        }


class OperationFilterForm(FilterForm):
    """Filters of operations."""

    q = forms.CharField(required=False, max_length=100, label="Name or text")
    kind = forms.ChoiceField(
        required=False, choices=[("", "All kinds"), *Operation.Kind.choices]
    )
    state = forms.ChoiceField(
        required=False, choices=[("", "All states"), *Operation.State.choices]
    )
    by = forms.CharField(required=False, max_length=150, label="By")
    since = _moment("Since")
    until = _moment("Until")

    def criteria(self) -> dict[str, Any]:
        """Return what is asked for, as `operations_matching` takes it."""
        self.is_valid()
        names = ("kind", "state", "by", "since", "until")
        asked = {
            name: self.cleaned_data[name]
            for name in names
            if self.cleaned_data.get(name)
        }
        return {"text": self.cleaned_data.get("q", ""), **asked}
