"""Releases of ONTAP: what came with which, and how long NetApp supports them."""

from __future__ import annotations

import datetime as dt
import re

Release = tuple[int, int, int]

REST_SINCE: Release = (9, 6, 0)
"""The first with a REST API. Source: netapp.ontap collection, "REST requires 9.6"."""

POLICIES_OVER_REST: Release = (9, 11, 1)
"""The first whose REST API creates the policies of mirrors, at the destination."""

GROUPS_OF_NAS_SINCE: Release = (9, 12, 1)
"""The first that makes consistency groups of existing NAS volumes over REST.

Source: /api/application/consistency-groups of the ONTAP REST reference; other groups
are older (9.10.1).
"""

HIDES_SNAPSHOTS_SINCE: Release = (9, 13, 1)
"""The first whose REST API can hide `.snapshot` of a volume."""

LIMITED_SUPPORT_YEARS = 2
END_OF_FULL_SUPPORT: dict[Release, dt.date] = {
    (9, 8, 0): dt.date(2023, 12, 31),
    (9, 9, 1): dt.date(2024, 6, 30),
    (9, 10, 1): dt.date(2025, 1, 31),
    (9, 11, 1): dt.date(2025, 7, 31),
    (9, 12, 1): dt.date(2026, 2, 28),
    (9, 13, 1): dt.date(2026, 6, 30),
    (9, 14, 1): dt.date(2027, 1, 31),
    (9, 15, 1): dt.date(2027, 7, 31),
    (9, 16, 1): dt.date(2028, 1, 31),
    (9, 17, 1): dt.date(2028, 9, 30),
    (9, 18, 1): dt.date(2029, 1, 31),
}
"""When updates of a release end. Two years of limited support without any follow.

Source: NetApp's "ONTAP Software Version Support", as endoflife.date lists it (August
2026), and issue 2108 of NetAppDocs/ontap for 9.8. It lists no date of 9.19.1.
"""


def release_of(version: str) -> Release | None:
    """Return the release of a version such as "9.16.1P4"; None if it says none."""
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    if found is None:
        return None
    generation, major, minor = (int(number or 0) for number in found.groups())
    return generation, major, minor


def release_text(release: Release) -> str:
    generation, major, minor = release
    return f"{generation}.{major}" + (f".{minor}" if minor else "")


def end_of_limited_support(release: Release) -> dt.date | None:
    """Return when NetApp's support of a release ends; None if it is not known."""
    full = END_OF_FULL_SUPPORT.get(release)
    if full is None:
        return None
    # The last day of a month; February has fewer in other years.
    first = full.replace(day=1, year=full.year + LIMITED_SUPPORT_YEARS)
    return (first + dt.timedelta(days=31)).replace(day=1) - dt.timedelta(days=1)
