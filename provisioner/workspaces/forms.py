"""Forms for existing workspaces."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from django import forms
from django.forms.boundfield import BoundWidget

from provisioner.catalog.forms.choices import TemplateChoiceField
from provisioner.catalog.models import Template
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused
from provisioner.sites.models import OpenTo
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm, EndField
from provisioner.workspaces.models import PUT_AWAY, Unsubmitted, Workspace

_WHAT_IT_DOES = {
    Unsubmitted.RESCUE: "Opened files are shelved in your name. Everything else "
    "goes into an archive with a list and checksums.",
    Unsubmitted.DISCARD: "Opened files are reverted and shelves deleted. The audit log "
    "keeps who chose this, and what was lost.",
    Unsubmitted.REFUSE: "If there is any, nothing is touched and you get the list.",
}


class WorkspaceRetireForm(AskingForm):
    """What to do with unsubmitted work, if some was found.

    Files that were not compared with Perforce cannot be rescued.
    """

    def __init__(
        self, data: Any = None, *, has_unsubmitted: bool, can_be_rescued: bool
    ) -> None:
        super().__init__(data)
        if not has_unsubmitted:
            return
        choices = [
            (Unsubmitted.REFUSE, "Retire only if there is none"),
            (Unsubmitted.DISCARD, "Discard what is listed here"),
        ]
        if can_be_rescued:
            choices.insert(0, (Unsubmitted.RESCUE, "Rescue what is listed here"))
        self.fields["unsubmitted"] = forms.ChoiceField(
            label="What happens to it",
            choices=choices,
            initial=choices[0][0],
            widget=forms.RadioSelect,
            required=False,
        )

    def options(self) -> Iterator[tuple[BoundWidget, str, bool]]:
        """Yield each choice with its effect, and whether it loses work."""
        for widget in self["unsubmitted"]:
            value = widget.data["value"]
            yield widget, _WHAT_IT_DOES[value], value == Unsubmitted.DISCARD

    def arguments(self) -> dict[str, str]:
        choice = self.cleaned_data.get("unsubmitted") or Unsubmitted.REFUSE
        return {"unsubmitted": choice}


class ShareForm(AskingForm):
    """The person or team to share a workspace with."""

    kind = forms.ChoiceField(
        label="With", choices=[("person", "A person"), ("team", "A team")]
    )
    name = forms.CharField(
        label="Username or name of the team",
        max_length=150,
        error_messages={"required": "Name a person or a team."},
        widget=forms.TextInput(
            attrs={
                "autocomplete": "off",
                "autocapitalize": "none",
                "spellcheck": "false",
                "list": "share-names",
            }
        ),
    )
    may_clone = forms.BooleanField(
        required=False,
        label="May clone it",
        help_text="A clone is theirs: they can read every file in it.",
    )

    span = EndField(label="For how long, or its last day", empty="until you revoke it")

    def clean_span(self) -> dt.datetime | None:
        """Return when it ends, which is in the future."""
        now, end = clocks.database_now(), self.cleaned_data["span"]
        ends_at: dt.datetime | None = (
            now + end if isinstance(end, dt.timedelta) else end
        )
        if ends_at is not None and ends_at <= now:
            raise forms.ValidationError("That day is over.")
        return ends_at

    def arguments(self) -> dict[str, Any]:
        return {
            self.cleaned_data["kind"]: self.cleaned_data["name"],
            "may_clone": self.cleaned_data["may_clone"],
            "ends_at": self.cleaned_data["span"],
        }

    def refuse(self, refusal: ActionRefused) -> None:
        """Show a refusal at the field of the name."""
        self.is_refused = True
        self.add_error("name", refusal.sentence)


class OpenForm(forms.Form):
    """Who may enter the directory of a workspace."""

    to = forms.ChoiceField(choices=OpenTo.choices, label="Open to")


def _lease_end() -> forms.ChoiceField:
    return forms.ChoiceField(
        required=False,
        label="Lease",
        choices=[("", "Any end"), ("week", "Ends this week")],
    )


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
    ends = _lease_end()


class OwnWorkspaceFilterForm(FilterForm):
    """Filters of a person's own workspaces."""

    q = forms.CharField(required=False, max_length=100, label="Name or template")
    state = forms.ChoiceField(
        required=False,
        choices=[
            ("", "All states"),
            *((s.value, s.label) for s in Workspace.State if s not in PUT_AWAY),
        ],
    )
    ends = _lease_end()
