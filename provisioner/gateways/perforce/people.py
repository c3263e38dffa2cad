"""What the server knows about its users."""

from __future__ import annotations

from provisioner.gateways.errors import AuthFailed
from provisioner.gateways.perforce.connection import Connection


def email_of(connection: Connection, user: str) -> str:
    """Return what stands as mail address in a user's spec, "" where nobody knows."""
    records = connection.run("users", user).records
    found = next((r for r in records if r["User"] == user), None)
    return str(found.get("Email", "")).strip() if found else ""


def ticket_seconds(connection: Connection, user: str) -> int:
    """Return for how long the ticket that the connection was opened with is good.

    A server that wants no ticket of this user, or was shown a password, says so
    without failing and without a TicketExpiration.

    Raises: AuthFailed.
    """
    records = connection.run("login", "-s").records
    seconds = [int(r.get("TicketExpiration", 0)) for r in records if r["User"] == user]
    if not any(seconds):
        raise AuthFailed(
            f"That is no ticket of {user}.", system="perforce", operation="login -s"
        )
    return max(seconds)
