"""Forms of the pages of logs and operations."""

from __future__ import annotations

from django import forms

from provisioner.engine import kinds
from provisioner.engine.models import Operation
from provisioner.web.filters import FilterForm, moment

_LARGEST_OFFSET = 2**53


def _offset() -> forms.IntegerField:
    return forms.IntegerField(required=False, min_value=0, max_value=_LARGEST_OFFSET)


class LogForm(forms.Form):
    """The query of a log page. Invalid values show the end of the log.

    `q` is the text to search for, and `start` the byte to search from. `offset` is the
    byte where a piece begins, `before` where it ends; `line` is the number of the line
    to show in context. A follower sends the `attempt` that it read, and the `number` of
    the next line. `wrap` sets how long lines are shown.
    """

    q = forms.CharField(required=False, max_length=200, label="Search the log")
    start = _offset()
    offset = _offset()
    before = _offset()
    line = forms.IntegerField(
        required=False, min_value=1, max_value=_LARGEST_OFFSET, label="Go to line"
    )
    number = _offset()
    wrap = forms.ChoiceField(required=False, choices=[("on", "On"), ("off", "Off")])
    attempt = forms.IntegerField(required=False, min_value=0, max_value=2**31)


class OperationFilterForm(FilterForm):
    """Filters of operations."""

    q = forms.CharField(required=False, max_length=100, label="Name or text")
    kind = forms.ChoiceField(
        required=False, choices=lambda: [("", "All kinds"), *kinds.choices()]
    )
    state = forms.ChoiceField(
        required=False, choices=[("", "All states"), *Operation.State.choices]
    )
    by = forms.CharField(required=False, max_length=150, label="By")
    since = moment("Since")
    until = moment("Until")
