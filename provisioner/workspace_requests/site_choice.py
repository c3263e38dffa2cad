"""Which site a workspace is cloned at when the request names none, or one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.queries import (
    default_at,
    mirrored_defaults,
    on_their_way,
    snapshots_at,
)
from provisioner.mirrors.refusals import NothingAtSite
from provisioner.sites.models import HomeSite, Site
from provisioner.sites.queries import home_sites_of, sites_of_address


def site_for(
    *,
    by: User,
    template: Template,
    wanted: Site | None = None,
    snapshot: Snapshot | None = None,
    quality: str = "",
) -> Site:
    """Return the site: the wanted one, else a home site with what is requested.

    A person's home site comes before their team's. Otherwise it is the template's.

    Raises: NothingAtSite (the template has no snapshot at the wanted site).
    """
    if wanted is not None:
        if (
            wanted.pk != template.site_id
            and not snapshots_at(template, wanted).exists()
        ):
            raise NothingAtSite(template=template.name, site=wanted.name)
        return wanted
    for home in home_sites_of(by):
        if home.pk == template.site_id or _has_it(template, home, snapshot, quality):
            return home
    return template.site


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """A site, and why that one, as a sentence."""

    site: Site
    because: str


def nearest_site(
    *,
    by: User,
    template: Template,
    address: str | None,
    snapshot: Snapshot | None = None,
    quality: str = "",
) -> Nearest:
    """Return the first site with what is requested, or the template's.

    In this order: a person's home site, their team's, those whose networks have the
    `address` that the request comes from (None: unknown), the template's.
    """
    homes = home_sites_of(by)
    own = HomeSite.objects.filter(person=by).values_list("site", flat=True).first()
    near = [
        (home, "your home site" if home.pk == own else "the home site of your team")
        for home in homes
    ]
    if address is not None:
        near += [
            (site, f"the site of {network}, where the request came from")
            for site, network in sites_of_address(address)
        ]
    for site, said in near:
        if site.pk == template.site_id or _has_it(template, site, snapshot, quality):
            return Nearest(site=site, because=f"{site.name} is {said}.")
    passed = " and ".join(dict.fromkeys(site.name for site, _ in near))
    why = f"{passed} has nothing that fits" if passed else "no nearer one is known"
    return Nearest(
        site=template.site,
        because=f"{template.site.name} is the template's site, and {why}.",
    )


def _has_it(
    template: Template, site: Site, snapshot: Snapshot | None, quality: str
) -> bool:
    if snapshot is not None:
        return snapshots_at(template, site).filter(pk=snapshot.pk).exists()
    return default_at(template, site, quality=quality) is not None


def places_of(
    homes: Sequence[Site], templates: Collection[Template]
) -> dict[int, tuple[Site, Snapshot]]:
    """Return which home site a person gets a workspace at, and of what, by template id.

    Templates of which they get workspaces at the template's own site are left out.
    `homes` are those of `home_sites_of`.
    """
    there = {home: mirrored_defaults(home, templates) for home in homes}
    places = {}
    for template in templates:
        for home in homes:
            if home.pk == template.site_id:
                break
            if snapshot := there[home].get(template.pk):
                snapshot.template = template
                places[template.pk] = (home, snapshot)
                break
    return places


def arrivals_of(
    homes: Sequence[Site], templates: Collection[Template]
) -> dict[int, str]:
    """Return what is on its way to a person's home sites, as phrases by template id."""
    if not homes:
        return {}
    # Nobody whose own site is the template's waits for a mirror at their team's.
    mirrors = Mirror.objects.filter(template__in=templates, site__in=homes).exclude(
        template__site=homes[0]
    )
    phrases: dict[int, str] = {}
    coming = on_their_way(mirrors).values()
    for home in homes:
        for each in coming:
            if each.mirrored.mirror.site_id == home.pk:
                template_id = each.mirrored.mirror.template_id
                phrases.setdefault(template_id, each.text(f" at {home.name}"))
    return phrases
