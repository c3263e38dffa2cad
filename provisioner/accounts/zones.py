"""The time zones in which people read times.

The one that the person chose; else the browser's, from its cookie, which is not stored;
else the installation's. What a browser sends is used only if it names a zone.
"""

from __future__ import annotations

import zoneinfo
from functools import cache
from zoneinfo import ZoneInfo

from django.conf import settings

from provisioner.accounts.models import User

COOKIE = "zone"
LONGEST_NAME = 64
NO_ZONES = frozenset({"Factory", "localtime", "posixrules"})
REGIONS = frozenset(
    {
        *("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic"),
        *("Australia", "Europe", "Indian", "Pacific"),
    }
)


@cache
def known_zones() -> frozenset[str]:
    """Return the names of all time zones, including old names."""
    return frozenset(zoneinfo.available_timezones() - NO_ZONES)


@cache
def zones_to_choose() -> tuple[str, ...]:
    """Return the zones named after places, and UTC before them."""
    places = (name for name in known_zones() if name.partition("/")[0] in REGIONS)
    return ("UTC", *sorted(places))


def find_zone(name: str) -> ZoneInfo | None:
    """Return the zone of that name, or None."""
    return ZoneInfo(name) if name in known_zones() else None


def installations_zone() -> ZoneInfo:
    return ZoneInfo(settings.DISPLAY_TIME_ZONE)


def zone_of(user: User | None, *, browsers: str = "") -> ZoneInfo:
    """Return the time zone of a person; None if unknown.

    `browsers` is the unchecked name from their browser.
    """
    chosen = user.time_zone if user is not None else ""
    return find_zone(chosen) or find_zone(browsers) or installations_zone()
