"""The form of a rescue's list of contents."""

from __future__ import annotations

from django import forms


class ContentsForm(forms.Form):
    """`start` is a byte of the manifest, as given by the page before."""

    start = forms.IntegerField(required=False, min_value=0, max_value=2**53)
