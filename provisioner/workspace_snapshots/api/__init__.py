"""/api/v1/workspaces/{id}/snapshots."""
