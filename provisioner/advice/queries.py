"""Rows of the running installation that advice is about."""

from __future__ import annotations

from django.db.models import Prefetch, QuerySet

from provisioner.insight.models import ServerFilesystem
from provisioner.mirrors.models import Mirror
from provisioner.sites.models import PerforceServer, ServerKind, Site

_PASSING_ON = (ServerKind.PROXY, ServerKind.BROKER)


def servers_with_storage() -> QuerySet[PerforceServer]:
    """Return the servers with data of their own, with what is known of its place."""
    filesystems = Prefetch(
        "configuration__filesystems", ServerFilesystem.objects.order_by("pk")
    )
    return (
        PerforceServer.objects.exclude(kind__in=_PASSING_ON)
        .select_related("configuration", "volumes")
        .prefetch_related(filesystems, "volumes__places")
        .order_by("name")
    )


def sites_with_releases() -> QuerySet[Site]:
    return Site.objects.select_related("capacity").order_by("name")


def mirrored_pairs() -> list[tuple[Site, Site]]:
    """Return each pair of a template's site and a mirror's, once."""
    mirrors = Mirror.objects.select_related("template__site", "site")
    pairs = {(each.template.site, each.site) for each in mirrors}
    return sorted(pairs, key=lambda pair: (pair[0].name, pair[1].name))
