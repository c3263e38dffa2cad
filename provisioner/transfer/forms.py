"""The form of a transfer."""

from __future__ import annotations

from typing import Any

from django import forms

from provisioner.catalog.forms.choices import SnapshotChoiceField
from provisioner.catalog.models import Snapshot
from provisioner.web.forms import AskingForm, NameField
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import default_to_move_to, snapshots_to_move_to


class TransferForm(AskingForm):
    """The snapshot, and what to transfer."""

    snapshot = SnapshotChoiceField(required=False, queryset=Snapshot.objects.none())
    name = NameField(required=False)
    takes_changed = forms.BooleanField(required=False, initial=True)
    takes_untracked = forms.BooleanField(required=False)
    retires_source = forms.BooleanField(required=False, initial=True)

    def __init__(self, data: Any = None, *, workspace: Workspace) -> None:
        super().__init__(data)
        field = self.fields["snapshot"]
        assert isinstance(field, SnapshotChoiceField)
        newer = snapshots_to_move_to(workspace)
        field.offer(newer, usual=default_to_move_to(workspace))
        field.error_messages["invalid_choice"] = (
            "That snapshot was deleted or is not newer. Choose another one."
        )
