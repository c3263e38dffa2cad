"""Build in a workspace, with the client library (docs/client.md).

CLONEYARD_SERVER, CLONEYARD_TOKEN and BUILD_ID come from whoever starts this.
"""

from __future__ import annotations

import os
import subprocess
import sys

import httpx
from cloneyard_client import AuthenticatedClient
from cloneyard_client.api.workspaces import (
    workspaces_create,
    workspaces_destroy,
    workspaces_retrieve,
)
from cloneyard_client.models import (
    Error,
    Workspace,
    WorkspaceCreateRequest,
    WorkspacePurpose,
    WorkspaceState,
)

HOUR = 3600
HELD_SECONDS = 60


def main() -> int:
    with AuthenticatedClient(
        base_url=os.environ["CLONEYARD_SERVER"],
        token=os.environ["CLONEYARD_TOKEN"],
        timeout=httpx.Timeout(HELD_SECONDS + 30),
        raise_on_unexpected_status=True,
    ) as client:
        workspace = get_workspace(client, build=os.environ["BUILD_ID"])
        try:
            environment = {**os.environ, "P4CLIENT": workspace.client}
            made = subprocess.run(["make"], cwd=workspace.path, env=environment)
            return made.returncode
        finally:
            workspaces_destroy.sync(workspace.id, client=client)


def get_workspace(client: AuthenticatedClient, *, build: str) -> Workspace:
    """Return a ready workspace: with its key the same one, however often asked for."""
    asked = WorkspaceCreateRequest(
        template="main", purpose=WorkspacePurpose.CI, lease=4 * HOUR
    )
    got = workspaces_create.sync(
        client=client, body=asked, wait=HELD_SECONDS, idempotency_key=f"client {build}"
    )
    while isinstance(got, Workspace) and got.state is WorkspaceState.PROVISIONING:
        got = workspaces_retrieve.sync(got.id, client=client, wait=HELD_SECONDS)
    if isinstance(got, Error):
        sys.exit(f"{got.detail} ({got.code})")
    assert got is not None  # other statuses raise
    return got


if __name__ == "__main__":
    sys.exit(main())
