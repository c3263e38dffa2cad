"""The form of a move."""

from __future__ import annotations

from typing import Any

from django import forms

from provisioner.moves.previews import MovePreview
from provisioner.web.forms import AskingForm


class MoveForm(AskingForm):
    """Where a template's volume goes."""

    aggregate = forms.ChoiceField(label="To the aggregate")

    def __init__(self, *args: Any, preview: MovePreview, **more: Any) -> None:
        super().__init__(*args, **more)
        field = self.fields["aggregate"]
        assert isinstance(field, forms.ChoiceField)
        names = [each.space.name for each in preview.choices if not each.is_current]
        field.choices = [(name, name) for name in names]
