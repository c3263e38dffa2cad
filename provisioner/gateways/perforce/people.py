"""What the server knows about its users."""

from __future__ import annotations

from provisioner.gateways.errors import AuthFailed
from provisioner.gateways.perforce.connection import Connection

LIMITS = ("MaxResults", "MaxScanRows", "MaxLockTime")


def email_of(connection: Connection, user: str) -> str:
    """Return what stands as mail address in a user's spec, "" where nobody knows."""
    records = connection.run("users", user).records
    found = next((r for r in records if connection.is_same_name(r["User"], user)), None)
    return str(found.get("Email", "")).strip() if found else ""


def spelling_of(connection: Connection, user: str) -> str | None:
    """Return how the server spells a user's name, None where it knows no such user."""
    names = [record["User"] for record in connection.run("users", user).records]
    return next((n for n in names if connection.is_same_name(n, user)), None)


def limits_of(connection: Connection, user: str) -> dict[str, int]:
    """Return what a user's groups limit a command to, by field; {} for nothing.

    Of several groups the most generous counts, and one that says nothing does not.

    Source: p4 groups -i user, p4 group -o; p4 help maxresults.
    """
    records = connection.run("groups", "-i", user).records
    forms = [
        connection.run("group", "-o", name).records[0]
        for name in sorted({record["group"] for record in records})
    ]
    limits = {}
    for field in LIMITS:
        given = {form.get(field, "unset") for form in forms} - {"unset"}
        if given and "unlimited" not in given:
            limits[field] = max(map(int, given))
    return limits


def ticket_seconds(connection: Connection, user: str) -> int:
    """Return for how long the ticket that the connection was opened with is good.

    A server that wants no ticket of this user, or was shown a password, says so
    without failing and without a TicketExpiration.

    Raises: AuthFailed.
    """
    records = connection.run("login", "-s").records
    seconds = [
        int(record.get("TicketExpiration", 0))
        for record in records
        if connection.is_same_name(record["User"], user)
    ]
    if not any(seconds):
        raise AuthFailed(
            f"That is no ticket of {user}.", system="perforce", operation="login -s"
        )
    return max(seconds)
