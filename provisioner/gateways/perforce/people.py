"""What the server knows about its users."""

from __future__ import annotations

from provisioner.gateways.perforce.connection import Connection


def email_of(connection: Connection, user: str) -> str:
    """Return what stands as mail address in a user's spec, "" where nobody knows."""
    records = connection.run("users", user).records
    found = next((r for r in records if r["User"] == user), None)
    return str(found.get("Email", "")).strip() if found else ""
