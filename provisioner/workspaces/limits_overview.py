"""All limits at a look, for those who run the place. Few queries, no remote call."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.workspaces import admission, permissions
from provisioner.workspaces.limits import Limit
from provisioner.workspaces.models import Site, SiteCapacity


@dataclass(frozen=True, kw_only=True)
class SiteLimits:
    """`capacity` was not saved where nobody has tried to measure."""

    site: Site
    capacity: SiteCapacity
    limits: list[Limit]

    @property
    def is_stale(self) -> bool:
        """Whether space refuses nobody, for want of a recent measurement."""
        return admission.is_stale(self.capacity)


@dataclass(frozen=True, kw_only=True)
class LimitsOverview:
    sites: list[SiteLimits]
    quotas: list[Limit]


def limits_overview(user: User) -> LimitsOverview:
    """Return the limits of every site, and all quotas.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    return LimitsOverview(
        sites=[limits_of_site(site) for site in Site.objects.order_by("name")],
        quotas=admission.all_quota_limits(),
    )


def limits_of_site(site: Site) -> SiteLimits:
    """Return what is limited at a site, its templates included."""
    return SiteLimits(
        site=site,
        capacity=SiteCapacity.objects.filter(site=site).first()
        or SiteCapacity(site=site),
        limits=[*admission.site_limits(site), *admission.template_limits(site)],
    )
