"""How long rows are kept of what grows without end."""
