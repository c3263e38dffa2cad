"""Releases of Linux, as `uname -r` tells them, and how long kernel.org fixes them."""

from __future__ import annotations

import datetime as dt
import os
import re

Series = tuple[int, int]

END_OF_SERIES: dict[Series, dt.date] = {
    (4, 19): dt.date(2024, 12, 5),
    (5, 4): dt.date(2025, 12, 3),
    (5, 10): dt.date(2026, 12, 31),
    (5, 15): dt.date(2026, 12, 31),
    (6, 1): dt.date(2027, 12, 31),
    (6, 6): dt.date(2027, 12, 31),
    (6, 12): dt.date(2028, 12, 31),
    (6, 18): dt.date(2028, 12, 31),
}
"""When kernel.org's fixes of its long-term series end, of NFS and of all else.

Source: kernel.org, "Active kernel releases", as endoflife.date lists it (August 2026).
"""


_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?(.*)")


def kernel_release() -> str:
    """Return the release of this host's kernel, as `uname -r`."""
    return os.uname().release


def series_of(release: str) -> Series | None:
    """Return the series of a release such as "6.12.7-1-amd64"; None if it is none."""
    found = _RELEASE.match(release)
    return (int(found[1]), int(found[2])) if found else None


def is_of_kernel_org(release: str) -> bool:
    """Return whether a release says that nobody else built it.

    What distributions build has a suffix, such as "-427.el9.x86_64", and fixes of
    theirs.
    """
    found = _RELEASE.match(release)
    return found is not None and not found[3]
