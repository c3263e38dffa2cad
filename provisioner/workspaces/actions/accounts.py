"""What people choose for themselves."""

from __future__ import annotations

from provisioner.accounts.models import User
from provisioner.accounts.zones import find_zone
from provisioner.workspaces.errors import InvalidRequest


def account_choose_zone(*, by: User, time_zone: str) -> None:
    """Show a person times in a zone, in pages and mails; "": as their browser says.

    Raises: InvalidRequest.
    """
    if time_zone and find_zone(time_zone) is None:
        raise InvalidRequest(f"There is no time zone “{time_zone}”.")
    by.time_zone = time_zone
    by.save(update_fields=["time_zone"])
