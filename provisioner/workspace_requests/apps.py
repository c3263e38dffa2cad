from __future__ import annotations

from django.apps import AppConfig


class WorkspaceRequestsConfig(AppConfig):
    name = "provisioner.workspace_requests"
