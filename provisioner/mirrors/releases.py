"""Which ONTAP releases SnapMirror connects."""

from __future__ import annotations

from provisioner.gateways.ontap.releases import (
    POLICIES_OVER_REST,
    Release,
    release_of,
    release_text,
)

OLDEST_PARTNER: dict[Release, Release] = {
    (9, 13, 1): (9, 8, 0),
    (9, 14, 1): (9, 9, 1),
    (9, 15, 1): (9, 9, 1),
    (9, 16, 1): (9, 11, 1),
    (9, 17, 1): (9, 12, 1),
    (9, 18, 1): (9, 13, 1),
    (9, 19, 1): (9, 14, 1),
}
"""The oldest release that each is connected with, in both directions.

Source: "Compatible ONTAP versions for SnapMirror relationships" of the ONTAP
documentation, asynchronous relationships.
"""


def remark_on(*, home: str, home_version: str, site: str, site_version: str) -> str:
    """Return what is wrong with mirrors from `home` to `site`, and the remedy.

    "" if nothing is, or if a version or the newer release is unknown.
    """
    at_home, there = release_of(home_version), release_of(site_version)
    if at_home is None or there is None:
        return ""
    if there < POLICIES_OVER_REST:
        return (
            f"{site} has ONTAP {release_text(there)}, which cannot create the policy "
            "of a mirror over REST. Upgrade it to "
            f"{release_text(POLICIES_OVER_REST)} or newer."
        )
    older, newer = sorted([at_home, there])
    oldest = OLDEST_PARTNER.get(newer)
    if oldest is None or older >= oldest:
        return ""
    behind, ahead = (site, home) if there == older else (home, site)
    return (
        f"SnapMirror does not connect ONTAP {release_text(newer)} at {ahead} with "
        f"{release_text(older)} at {behind}: transfers may fail. Upgrade {behind} to "
        f"{release_text(oldest)} or newer."
    )
