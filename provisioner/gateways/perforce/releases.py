"""Releases of Perforce programs, such as "2024.2", and how long they are supported."""

from __future__ import annotations

import datetime as dt
import re

MAINTENANCE_YEARS, SUPPORT_YEARS = 2, 4
GENERAL_AVAILABILITY = {
    "2022.1": dt.date(2022, 5, 17),
    "2022.2": dt.date(2022, 11, 16),
    "2023.1": dt.date(2023, 5, 18),
    "2023.2": dt.date(2023, 11, 16),
}
"""From then on a release gets updates for two years, and support for four.

Source: "Helix Core APIs End-of-Life (EOL) Schedule" of perforce.com, the rows of the
C++ API, which comes out with the server; the server's own page was not to be had.
Later releases are not in the copy that we read. Support of older ones ended by 2024.
"""

_OF_P4D = re.compile(r"P4D/[^/\s]+/(\d{4}\.\d+)")


def p4d_release_in(version: str) -> str:
    """Return the release in what a server says of itself, "" if it says none.

    Source: serverVersion of p4 info, and p4d -V: "P4D/LINUX26X86_64/2024.2/…".
    """
    found = _OF_P4D.search(version)
    return found[1] if found else ""


def maintenance_ends(release: str) -> tuple[dt.date, dt.date]:
    """Return the earliest and the latest day on which updates of a release end.

    They are the same where its day is known. Otherwise the year in its name says it:
    "2024.2" came out in 2024.
    """
    return _after(release, years=MAINTENANCE_YEARS)


def support_ends(release: str) -> tuple[dt.date, dt.date]:
    """Return the earliest and the latest day on which support of a release ends."""
    return _after(release, years=SUPPORT_YEARS)


def _after(release: str, *, years: int) -> tuple[dt.date, dt.date]:
    day = GENERAL_AVAILABILITY.get(release)
    if day is not None:
        end = day.replace(year=day.year + years)
        return end, end
    year = int(release.split(".")[0]) + years
    return dt.date(year, 1, 1), dt.date(year, 12, 31)
