"""Whose a client is that has the name of a workspace's: names are free once they went.

Whoever saw the name can make a client of it when ours is gone, by its owner or in the
trash. A stranger's is neither read, changed nor deleted, and holds nothing up.
"""

from __future__ import annotations

from provisioner.gateways.perforce.types import ClientSpec
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.run import WorkspaceRun


def find_own_client(run: WorkspaceRun) -> ClientSpec | None:
    """Return the workspace's client, None where it is gone or a stranger's."""
    client = run.perforce.clients.find(run.workspace.client_name)
    return client if client is not None and is_own(client, run.workspace) else None


def is_own(client: ClientSpec, workspace: Workspace) -> bool:
    """Return whether a client is the workspace's: it says so, or its files are.

    Owners may write a description of their own, or move the root.
    """
    has_its_root = client.root.rstrip("/") == str(workspace.path)
    return has_its_root or str(workspace.tag) in client.description
