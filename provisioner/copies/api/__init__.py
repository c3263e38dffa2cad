"""/api/v1/copy-rules and /api/v1/workspace-copies."""
