"""Filters of lists; the URL holds their state."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils import timezone

from provisioner.web.selects import lean_selects


class FilterForm(forms.Form):
    """The filters of a list; times are in the reader's zone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        lean_selects(self)
        for field in self.fields.values():
            if isinstance(field, forms.DateTimeField):
                field.label = f"{field.label} ({timezone.get_current_timezone()})"

    def clean(self) -> dict[str, Any]:
        since, until = (self.cleaned_data.get(name) for name in ("since", "until"))
        if since is not None and until is not None and until < since:
            self.add_error("until", "It ends before it begins. Choose a later time.")
        return self.cleaned_data

    def criteria(self) -> dict[str, Any]:
        """Return the filters that are set, with `q` as `text`.

        Empty and invalid fields are left out.
        """
        self.is_valid()
        return {
            "text" if name == "q" else name: value
            for name, value in self.cleaned_data.items()
            if value not in ("", None)
        }


class SearchForm(FilterForm):
    """A search field."""

    q = forms.CharField(required=False, max_length=100, label="Words")


def moment(label: str) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"})
    return forms.DateTimeField(required=False, label=label, widget=widget)
