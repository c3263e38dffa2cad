from __future__ import annotations

from django.apps import AppConfig


class WorkspaceSnapshotsConfig(AppConfig):
    name = "provisioner.workspace_snapshots"
