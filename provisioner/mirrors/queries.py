"""Which mirrors a person may see, and where a template's snapshots can be cloned."""

from __future__ import annotations

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import default_snapshot, in_scope
from provisioner.catalog.retention import needs_of
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.sites.models import Site

AVAILABLE = MirroredSnapshot.State.AVAILABLE


def mirrors_visible_to(user: User) -> QuerySet[Mirror]:
    """Return the mirrors of all templates that a person may see."""
    mirrors = Mirror.objects.filter(in_scope(user, by="template"))
    return mirrors.select_related(
        "template__site__perforce_server", "site__perforce_server"
    )


def find_mirror(template: Template, site: Site) -> Mirror | None:
    """Return the template's mirror at a site, or None."""
    return Mirror.objects.filter(template=template, site=site).first()


def snapshots_at(template: Template, site: Site) -> QuerySet[Snapshot]:
    """Return the template's snapshots that workspaces can be cloned from at a site."""
    snapshots = Snapshot.objects.available().filter(template=template)
    if site.pk == template.site_id:
        return snapshots
    there = MirroredSnapshot.objects.filter(
        mirror__template=template, mirror__site=site, state=AVAILABLE
    ).exclude(mirror__state=Mirror.State.DELETING)
    return snapshots.filter(pk__in=there.values("snapshot"))


def parent_volume(snapshot: Snapshot, site: Site) -> str:
    """Return the name of the volume at a site that has this snapshot.

    Raises: Mirror.DoesNotExist (the template has no mirror there).
    """
    template = snapshot.template
    if site.pk == template.site_id:
        return template.volume_name
    mirror = Mirror.objects.select_related("template").get(template=template, site=site)
    return mirror.volume_name


def next_to_transfer(mirror: Mirror) -> Snapshot | None:
    """Return the template's default snapshot unless the mirror has it."""
    wanted = default_snapshot(mirror.template)
    if wanted is None:
        return None
    is_there = mirror.snapshots.filter(snapshot=wanted, state=AVAILABLE).exists()
    return None if is_there else wanted


def has_clones(mirror: Mirror) -> bool:
    """Return whether workspaces at the mirror's site are clones of its snapshots."""
    snapshots = Snapshot.objects.filter(template=mirror.template_id)
    needs = needs_of(list(snapshots))
    return any(rows.filter(site=mirror.site_id).exists() for rows in needs)
