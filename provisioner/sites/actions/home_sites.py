"""Choose where people get workspaces."""

from __future__ import annotations

from provisioner.accounts import permissions
from provisioner.accounts.models import Team, User
from provisioner.sites.models import HomeSite, Site


def home_site_choose(*, by: User, site: Site | None) -> None:
    """Set one's own home site; None: that of the team, or else of each template."""
    if site is None:
        HomeSite.objects.filter(person=by).delete()
    else:
        HomeSite.objects.update_or_create(person=by, defaults={"site": site})


def team_home_site_choose(*, by: User, team: Team, site: Site | None) -> None:
    """Set the home site of a team's people; None: that of each template.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    if site is None:
        HomeSite.objects.filter(team=team).delete()
    else:
        HomeSite.objects.update_or_create(team=team, defaults={"site": site})
