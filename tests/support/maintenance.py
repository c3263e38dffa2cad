"""Maintenance that is announced."""

from __future__ import annotations

import datetime as dt

from django.utils import timezone

from provisioner.maintenance.actions import maintenance_announce
from provisioner.maintenance.models import Maintenance
from tests.support.factories import UserFactory

MESSAGE = "The array is upgraded; new workspaces wait."


def make_maintenance(
    *, begins_in: float = 1, lasts: float = 2, message: str = MESSAGE
) -> Maintenance:
    """Announce maintenance; times are in hours."""
    starts_at = timezone.now() + dt.timedelta(hours=begins_in)
    return maintenance_announce(
        by=UserFactory.create(is_staff=True),
        message=message,
        starts_at=starts_at,
        ends_at=starts_at + dt.timedelta(hours=lasts),
    )
