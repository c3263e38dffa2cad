"""Where in the list of a rescue a page begins."""

from __future__ import annotations

from django import forms


class ContentsForm(forms.Form):
    """`start` is a byte of the list, as the page before has it."""

    start = forms.IntegerField(required=False, min_value=0, max_value=2**53)
