"""The form that clones a workspace."""

from __future__ import annotations

from typing import Any

from django import forms

from provisioner.accounts.models import User
from provisioner.web.forms import AskingForm, NameField
from provisioner.workspace_snapshots.models import WorkspaceSnapshot
from provisioner.workspaces.models import Workspace


class CloneForm(AskingForm):
    snapshot = forms.ModelChoiceField(
        queryset=WorkspaceSnapshot.objects.none(),
        required=False,
        empty_label="As it is now",
        label="As of",
    )
    name = NameField(required=False)
    owner = forms.ModelChoiceField(
        queryset=User.objects.filter(is_active=True),
        required=False,
        to_field_name="username",
        label="For",
        help_text="Somebody who may see this workspace. Empty: you.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"invalid_choice": "There is no account with this name."},
    )

    def __init__(self, data: Any = None, *, source: Workspace, **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        snapshot = self.fields["snapshot"]
        assert isinstance(snapshot, forms.ModelChoiceField)
        snapshot.queryset = WorkspaceSnapshot.objects.filter(workspace=source)
