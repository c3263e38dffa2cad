"""Form fields that offer templates and their snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django import forms
from django.forms.models import ModelChoiceIterator
from django.utils import timezone

from provisioner.catalog.freshness import behind_of
from provisioner.catalog.models import Snapshot, SnapshotQuerySet, Template
from provisioner.lib.times import age_text, exact_text

if TYPE_CHECKING:
    _ChoiceOfSnapshot = forms.ModelChoiceField[Snapshot]
    _ChoiceOfTemplate = forms.ModelChoiceField[Template]
    _ChoiceOfTemplates = forms.ModelMultipleChoiceField[Template]
else:
    _ChoiceOfSnapshot = forms.ModelChoiceField
    _ChoiceOfTemplate = forms.ModelChoiceField
    _ChoiceOfTemplates = forms.ModelMultipleChoiceField


class NamesToChoose(ModelChoiceIterator):
    """Loads only the names of the choices, and the whole chosen row."""

    def __init__(self, field: Any) -> None:
        super().__init__(field)
        self.queryset = self.queryset.select_related(None).only("name")


class TemplateChoiceField(_ChoiceOfTemplate):
    """One of hundreds of templates."""

    iterator = NamesToChoose


class TemplatesChoiceField(_ChoiceOfTemplates):
    """Several of hundreds of templates."""

    iterator = NamesToChoose
    widget = forms.CheckboxSelectMultiple


class SnapshotChoiceField(_ChoiceOfSnapshot):
    """A choice that shows quality, freshness and age; `behind` is by id."""

    behind: Mapping[int, int] = MappingProxyType({})

    def offer(self, snapshots: SnapshotQuerySet, *, usual: Snapshot | None) -> None:
        """Offer these snapshots, and an empty choice if one of them is the default."""
        self.queryset = snapshots
        self.behind = behind_of(snapshots)
        self.empty_label = "Choose one"
        if usual is not None:
            label = self.label_from_instance(usual)
            self.empty_label = f"Latest (recommended): {label[0].lower()}{label[1:]}"

    def label_from_instance(self, obj: Snapshot) -> str:
        said = [f"Change {obj.change}", obj.mark.lower()]
        if obj.label:
            said.insert(1, f"“{obj.label}”")
        if obj.part_change is not None:
            said[0] += f", parts at change {obj.part_change}"
        behind = self.behind.get(obj.pk)
        if behind is not None:
            said.append(f"{behind:,} {'change' if behind == 1 else 'changes'} behind")
        made_at = exact_text(timezone.localtime(obj.created_at))
        age = age_text(obj.created_at, now=timezone.now())
        return ", ".join([*said, f"built {age} ({made_at})"])
