"""People of the provider who have not signed in there for so long that they are away.

A provider cannot be asked who is left, so what it last said of somebody counts.
"""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.identities.models import Identity
from provisioner.lib import clocks

WARNED_BEFORE = dt.timedelta(days=14)


def closes_absent_people() -> bool:
    """Return whether accounts of people who stay away are closed."""
    return bool(settings.OIDC_ISSUER and settings.OIDC_ABSENT_DAYS)


def people_of_the_provider() -> QuerySet[Identity]:
    """Return those of the provider. Machines are nobody's, and never sign in."""
    return Identity.objects.filter(
        issuer=settings.OIDC_ISSUER, account__is_service=False
    )


def absent_people() -> QuerySet[Identity]:
    """Return those of the provider who are away by now."""
    last = clocks.database_now() - dt.timedelta(days=settings.OIDC_ABSENT_DAYS)
    return people_of_the_provider().filter(vouched_at__lt=last)


def closes_soon_at(account: User) -> dt.datetime | None:
    """Return from when on an account is closed; None if that is weeks away, or never.

    The time may have passed: the sync is nightly, and may be waiting for approval.
    """
    if not (account.is_active and closes_absent_people()):
        return None
    identity = people_of_the_provider().filter(account=account).first()
    if identity is None:
        return None
    closes_at = identity.vouched_at + dt.timedelta(days=settings.OIDC_ABSENT_DAYS)
    return closes_at if closes_at - clocks.database_now() < WARNED_BEFORE else None
