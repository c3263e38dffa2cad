"""All limits, for administrators. Few queries, no remote call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.lib.limits import Limit
from provisioner.limits import admission
from provisioner.limits.tallies import Tallies
from provisioner.sites.models import Site, SiteCapacity

LIMITS_SHOWN = 50


def nearest(limits: Iterable[Limit], *, most: int) -> list[Limit]:
    """Return the limits that are nearest to being reached, nearest first."""
    return nlargest(most, limits, key=lambda limit: limit.percent or 0)


@dataclass(frozen=True, kw_only=True)
class SiteLimits:
    """The limits of a site. `capacity` is unsaved before the first measurement.

    With `is_stale` there is no recent measurement, so nobody is refused for lack of
    space.
    """

    site: Site
    capacity: SiteCapacity
    is_stale: bool
    limits: list[Limit]

    @property
    def shown(self) -> list[Limit]:
        """The nearest limits, nearest first."""
        return nearest(self.limits, most=LIMITS_SHOWN)

    @property
    def more(self) -> int:
        return max(len(self.limits) - LIMITS_SHOWN, 0)


@dataclass(frozen=True, kw_only=True)
class LimitsOverview:
    sites: list[SiteLimits]
    quotas: list[Limit]

    @property
    def quotas_shown(self) -> list[Limit]:
        """The nearest limits, nearest first."""
        return nearest(self.quotas, most=LIMITS_SHOWN)

    @property
    def more_quotas(self) -> int:
        return max(len(self.quotas) - LIMITS_SHOWN, 0)


def limits_overview(user: User) -> LimitsOverview:
    """Return the limits of every site, and all quotas.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    tallies = Tallies()
    return LimitsOverview(
        sites=limits_of_sites(tallies),
        quotas=[*admission.team_limits(tallies), *admission.people_limits(tallies)],
    )


def limits_of_sites(tallies: Tallies) -> list[SiteLimits]:
    """Return the limits of each site and its templates."""
    sites = Site.objects.select_related("capacity").order_by("name")
    known = admission.known_of(
        {site: getattr(site, "capacity", None) for site in sites}
    )
    return [
        SiteLimits(
            site=of_site.site,
            capacity=of_site.measured or SiteCapacity(site=of_site.site),
            is_stale=of_site.fresh is None,
            limits=admission.all_limits_of_site(of_site, tallies),
        )
        for of_site in known.values()
    ]
