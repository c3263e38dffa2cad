"""/api/v1/workspaces/{id}/restore-copy."""
