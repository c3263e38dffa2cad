"""What people choose for themselves."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from provisioner.accounts.zones import zones_to_choose
from provisioner.web.forms import AskingForm


class ZoneForm(AskingForm):
    time_zone = forms.ChoiceField(required=False, label="Time zone")

    def __init__(self, data: Any = None, *, chosen: str, browsers: str) -> None:
        super().__init__(data, initial={"time_zone": chosen})
        field = self.fields["time_zone"]
        assert isinstance(field, forms.ChoiceField)
        zones = zones_to_choose()
        others = [chosen] if chosen and chosen not in zones else []
        otherwise = browsers or settings.DISPLAY_TIME_ZONE
        field.choices = [
            ("", f"As my browser says, now {otherwise}"),
            *((zone, zone) for zone in (*others, *zones)),
        ]
