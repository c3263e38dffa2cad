"""The form that restores a workspace from a copy."""

from __future__ import annotations

from typing import Any

from django import forms

from provisioner.web.forms import AskingForm, NameField


class RecoverForm(AskingForm):
    name = NameField(required=False)
    is_stopped = forms.BooleanField(
        required=False, label="The original is stopped: nobody works in it"
    )

    def __init__(self, data: Any = None, *, may_confirm: bool) -> None:
        super().__init__(data)
        if not may_confirm:
            del self.fields["is_stopped"]
