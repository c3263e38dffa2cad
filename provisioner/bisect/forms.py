"""Forms for bisections."""

from __future__ import annotations

from django import forms

from provisioner.bisect.actions import LARGEST_CHANGE, LONGEST_COMMAND
from provisioner.bisect.models import Bisection
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm, LinesField


def _change_field(label: str, help_text: str) -> forms.IntegerField:
    return forms.IntegerField(
        label=label, help_text=help_text, min_value=1, max_value=LARGEST_CHANGE
    )


class BisectionCreateForm(AskingForm):
    """The range of changes to search, and how to test them."""

    good = _change_field("Good change", "A change at which it still worked.")
    bad = _change_field("Bad change", "A later change at which it is broken.")
    command = LinesField(
        rows=3,
        required=False,
        label="Command",
        max_length=LONGEST_COMMAND,
        help_text="Run by /bin/sh in the root of each clone, as you. Exit code 0 "
        "means good, 125 skip, any other up to 127 bad. It gets the "
        "environment of bisections, not that of builds. Without a command "
        "you check each clone and decide.",
    )


class BisectionFilterForm(FilterForm):
    """Filters of bisections."""

    q = forms.CharField(required=False, max_length=100, label="Template or owner")
    state = forms.ChoiceField(
        required=False, choices=[("", "All states"), *Bisection.State.choices]
    )
