"""/api/v1/workspaces/{id}/clone."""
