"""The form that clones a workspace."""

from __future__ import annotations

from typing import Any

from django import forms

from provisioner.accounts.models import User
from provisioner.lib.times import exact
from provisioner.web.forms import AskingForm, NameField
from provisioner.workspace_snapshots.models import WorkspaceSnapshot
from provisioner.workspaces.models import Workspace


class _SnapshotField(forms.ModelChoiceField[WorkspaceSnapshot]):
    """Snapshots by when they were taken."""

    def label_from_instance(self, obj: WorkspaceSnapshot) -> str:
        return f"{exact(obj.taken_at)} ({obj.name})"


class CloneForm(AskingForm):
    """As of when, and for whom; both are for those who may change the original."""

    snapshot = _SnapshotField(
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

    def __init__(
        self,
        data: Any = None,
        *,
        source: Workspace,
        may_change: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(data, **kwargs)
        if not may_change:
            del self.fields["snapshot"], self.fields["owner"]
            return
        snapshot = self.fields["snapshot"]
        assert isinstance(snapshot, forms.ModelChoiceField)
        snapshot.queryset = WorkspaceSnapshot.objects.filter(workspace=source)
