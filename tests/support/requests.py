"""Asking for workspaces."""

from __future__ import annotations

from typing import Any

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.workspace_requests import actions
from provisioner.workspace_requests.requests import WorkspaceRequest
from provisioner.workspaces.models import Workspace


def workspace_create(*, by: User, template: Template, **choices: Any) -> Workspace:
    """Ask for a workspace; `choices` are fields of the request."""
    request = WorkspaceRequest(by=by, template=template, **choices)
    return actions.workspace_create(request)
