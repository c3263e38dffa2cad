"""The form of an announcement."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils import timezone

from provisioner.maintenance.models import LONGEST_MESSAGE
from provisioner.web.filters import moment
from provisioner.web.forms import AskingForm


class MaintenanceForm(AskingForm):
    """Times are in the writer's time zone."""

    message = forms.CharField(
        max_length=LONGEST_MESSAGE,
        help_text="What is done, and what does not work meanwhile.",
    )
    starts_at = moment("From")
    ends_at = moment("Until")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("starts_at", "ends_at"):
            field = self.fields[name]
            field.required = True
            field.label = f"{field.label} ({timezone.get_current_timezone()})"
