"""Filters of lists: their state is the address, and what makes no sense is left out."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils import timezone

from provisioner.web.selects import lean_selects


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
