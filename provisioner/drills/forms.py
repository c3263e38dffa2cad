"""The form of a plan of drills, and the filter of their results."""

from __future__ import annotations

from typing import Any

from django import forms

from provisioner.drills.models import MOST_HOURS, DrillPlan
from provisioner.drills.queries import replicas_to_name
from provisioner.sandboxes.forms import PlanForm
from provisioner.web.filters import FilterForm
from provisioner.web.forms import LinesField


class DrillPlanForm(PlanForm):
    """Where a server is brought up, from which volumes, and when."""

    replicas = LinesField(
        rows=4,
        label="Replicated volumes",
        help_text="One a line, as VOLUME=REPLICA: the server's volume, and the one at "
        "the host's site that SnapMirror fills from it.",
    )
    oldest_hours = forms.IntegerField(
        min_value=1,
        max_value=MOST_HOURS,
        label="Maximum age of the copy, in hours",
        help_text="An older copy counts as a failure: so much work would be lost.",
    )

    elsewhere = True

    def __init__(self, *args: Any, plan: DrillPlan, **kwargs: Any) -> None:
        super().__init__(*args, plan=plan, **kwargs)
        self.initial["replicas"] = replicas_to_name(plan)
        self.fields[
            "host"
        ].help_text = (
            "At a site other than the server's, where SnapMirror keeps its copies."
        )

    def clean_replicas(self) -> dict[str, str]:
        """Return the replicas by volume."""
        pairs = {}
        for line in filter(
            None, map(str.strip, self.cleaned_data["replicas"].split("\n"))
        ):
            source, sign, replica = (part.strip() for part in line.partition("="))
            if not sign:
                raise forms.ValidationError(f"“{line}” is not VOLUME=REPLICA.")
            if source in pairs:
                raise forms.ValidationError(f"Name {source} once.")
            pairs[source] = replica
        return pairs


class DrillFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=100, label="Server")
    outcome = forms.ChoiceField(
        required=False,
        label="Outcome",
        choices=[("", "All outcomes"), ("passed", "Passed"), ("other", "Not passed")],
    )
