"""What the pages and the API show of the running installation."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.urls import reverse

from provisioner.advice.deviations import ROLES_OF_PLACES, InUse, protocols_of
from provisioner.advice.kinds import Protocol, Role
from provisioner.advice.queries import (
    mirrored_pairs,
    servers_with_storage,
    sites_with_releases,
)
from provisioner.advice.support import (
    Status,
    Support,
    kernel_support,
    nfs_support,
    ontap_support,
    p4d_support,
    worst,
)
from provisioner.engine.workers import AliveWorker, alive_workers
from provisioner.gateways.hosts.mounts import NfsUse
from provisioner.insight.models import ServerConfiguration, ServerFilesystem
from provisioner.mirrors.queries import remarks_on
from provisioner.sandboxes.models import ServerVolume
from provisioner.sites.models import PerforceServer, Site

MOST_NAMED = 3

STATUS_LABELS = {
    Status.TOO_OLD: "Too old",
    Status.UNSAFE: "Unsafe",
    Status.AGING: "Upgrade soon",
    Status.UNKNOWN: "Unknown",
    Status.GOOD: "Known good",
}
# The marks of states that pages have.
STATUS_MARKS = {
    Status.TOO_OLD: "bad",
    Status.UNSAFE: "bad",
    Status.AGING: "advised",
    Status.UNKNOWN: "skipped",
    Status.GOOD: "passed",
}


@dataclass(frozen=True, kw_only=True)
class SupportRow:
    """A row of the support matrix: `found` is the release or the options."""

    component: str
    subject: str
    url: str
    found: str
    support: Support

    @property
    def label(self) -> str:
        return STATUS_LABELS[self.support.status]

    @property
    def mark(self) -> str:
        return STATUS_MARKS[self.support.status]


@dataclass(frozen=True, kw_only=True)
class HowMounted:
    """How a host sees a site's volumes.

    `host` is "" if no worker there was heard; `is_seen` is whether its own mounts say
    it, or the site's settings alone.
    """

    site: Site
    host: str
    options: tuple[str, ...]
    is_seen: bool


# --- the support matrix


def support_rows(*, today: dt.date) -> list[SupportRow]:
    """Return the matrix in order: ONTAP, pairs of it, p4d, kernels, NFS."""
    sites, workers = list(sites_with_releases()), alive_workers()
    return [
        *_ontap_rows(sites, today=today),
        *_pair_rows(),
        *_p4d_rows(today=today),
        *_kernel_rows(workers, today=today),
        *_nfs_rows(sites, workers),
    ]


def _ontap_rows(sites: Sequence[Site], *, today: dt.date) -> Iterator[SupportRow]:
    for site in sites:
        version = site.capacity.ontap_version if hasattr(site, "capacity") else ""
        yield SupportRow(
            component="ONTAP",
            subject=site.name,
            url=reverse("site-detail", args=[site.pk]),
            found=version,
            support=ontap_support(version, today=today),
        )


def _pair_rows() -> Iterator[SupportRow]:
    pairs = mirrored_pairs()
    remarks = remarks_on(pairs)
    for home, there in pairs:
        if remark := remarks.get((home.pk, there.pk)):
            yield SupportRow(
                component="SnapMirror",
                subject=f"{home.name} to {there.name}",
                url=reverse("site-detail", args=[there.pk]),
                found="",
                support=Support(
                    status=Status.TOO_OLD,
                    says=remark,
                    source="ONTAP documentation, Compatible ONTAP versions for "
                    "SnapMirror relationships",
                ),
            )


def _p4d_rows(*, today: dt.date) -> Iterator[SupportRow]:
    for server in servers_with_storage():
        read = _configuration(server)
        version = read.version if read else ""
        yield SupportRow(
            component="p4d",
            subject=server.name,
            url=reverse("perforce-server-detail", args=[server.pk]),
            found=version,
            support=p4d_support(version, today=today),
        )


def _kernel_rows(
    workers: Sequence[AliveWorker], *, today: dt.date
) -> Iterator[SupportRow]:
    kernels = sorted({(worker.host, worker.kernel) for worker in workers})
    for host, kernel in kernels:
        yield SupportRow(
            component="Linux",
            subject=host,
            url=f"{reverse('overview')}#workers",
            found=kernel,
            support=kernel_support(kernel, today=today),
        )


def _nfs_rows(
    sites: Sequence[Site], workers: Sequence[AliveWorker]
) -> Iterator[SupportRow]:
    for site in sites:
        for mounted in how_mounted(site, workers):
            yield SupportRow(
                component="NFS",
                subject=f"{site.name} at {mounted.host}" if mounted.host else site.name,
                url=reverse("site-detail", args=[site.pk]),
                found=",".join(mounted.options),
                support=_nfs_support(mounted),
            )


def _nfs_support(mounted: HowMounted) -> Support:
    if mounted.site.is_of_the_lab and not mounted.is_seen:
        return Support(
            status=Status.UNKNOWN,
            says="The lab has no NFS: its volumes are directories of this host.",
        )
    return nfs_support(mounted.options)


def how_mounted(site: Site, workers: Sequence[AliveWorker]) -> list[HowMounted]:
    """Return how each host whose worker serves a site sees its volumes.

    Of several ways at one host the worst counts. Without a worker it is the settings.
    """
    set_options = tuple(option for option in site.mount_options.split(",") if option)
    seen: dict[str, list[NfsUse]] = {}
    for worker in workers:
        if worker.serves(site.host_queue):
            uses = [use for use in worker.nfs_uses if _is_of(site, use)]
            seen.setdefault(worker.host, []).extend(uses)
    if not seen:
        return [HowMounted(site=site, host="", options=set_options, is_seen=False)]
    return [
        HowMounted(
            site=site,
            host=host,
            options=_worst_options(uses) if uses else set_options,
            is_seen=bool(uses),
        )
        for host, uses in sorted(seen.items())
    ]


def _is_of(site: Site, use: NfsUse) -> bool:
    return PurePath(use.at).is_relative_to(site.mount_root)


def _worst_options(uses: Sequence[NfsUse]) -> tuple[str, ...]:
    judged = {nfs_support(use.options): use.options for use in uses}
    return judged[worst(list(judged))]


# --- what is in use


def places_in_use() -> list[InUse]:
    """Return where servers keep their data, and how sites' workspaces are mounted."""
    workers = alive_workers()
    return [
        *(place for server in servers_with_storage() for place in _places_of(server)),
        *(
            place
            for site in sites_with_releases()
            for place in _workspaces_of(site, workers)
        ),
    ]


def _places_of(server: PerforceServer) -> Iterator[InUse]:
    read, url = (
        _configuration(server),
        reverse("perforce-server-detail", args=[server.pk]),
    )
    named = {volume.role: volume for volume in _volumes_of(server)}
    seen: set[Role] = set()
    for names, place in _grouped(read.filesystems.all() if read else ()):
        role = ROLES_OF_PLACES.get(names[0], Role.DEPOTS)
        seen.add(role)
        options = place.mount_options.split(",") if place.mount_options else None
        yield InUse(
            whose=server.name,
            url=url,
            name=_several(names),
            role=role,
            saw=_saw(place, named.get(_VOLUME_ROLES.get(role, ""))),
            protocols=protocols_of(place.fs_type, options),
        )
    for role, code in _VOLUME_ROLES.items():
        volume = named.get(code)
        if volume is not None and role not in seen:
            yield InUse(
                whose=server.name,
                url=url,
                name=volume.volume,
                role=role,
                saw="A volume of ONTAP, mounted as files; its server was not read yet",
                protocols=(Protocol.NFS3, Protocol.NFS41),
            )


_VOLUME_ROLES = {
    Role.DB: "db",
    Role.JOURNAL: "journal",
    Role.LOG: "log",
    Role.DEPOTS: "depot",
}


def _saw(place: ServerFilesystem, volume: ServerVolume | None) -> str:
    options = (
        f"mounted with {place.mount_options}"
        if place.mount_options
        else "mount options not known"
    )
    named = f"; for sandboxes the volume {volume.volume} is named" if volume else ""
    return f"{place.fs_type} at {place.mount_point or '?'}, {options}{named}"


def _grouped(
    places: Sequence[ServerFilesystem] | Any,
) -> Iterator[tuple[list[str], ServerFilesystem]]:
    """Yield a server's own places, and its depots by their filesystem."""
    depots: dict[tuple[str, str], tuple[list[str], ServerFilesystem]] = {}
    for place in places:
        if place.name in ROLES_OF_PLACES:
            yield [place.name], place
        else:
            key = (place.fs_type, place.mount_point)
            names, _ = depots.setdefault(key, ([], place))
            names.append(place.name)
    yield from depots.values()


def _several(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _workspaces_of(site: Site, workers: Sequence[AliveWorker]) -> Iterator[InUse]:
    for mounted in how_mounted(site, workers):
        is_lab = site.is_of_the_lab and not mounted.is_seen
        where = f" at {mounted.host}" if mounted.host else ""
        options = ",".join(mounted.options) or "no options"
        yield InUse(
            whose=site.name,
            url=reverse("site-detail", args=[site.pk]),
            name=f"workspaces{where}",
            role=Role.WORKSPACES,
            saw="directories of the lab"
            if is_lab
            else f"NFS, {'mounted' if mounted.is_seen else 'set'} with {options}",
            protocols=() if is_lab else protocols_of("nfs", mounted.options),
        )


def _configuration(server: PerforceServer) -> ServerConfiguration | None:
    try:
        read: ServerConfiguration = server.configuration
    except ObjectDoesNotExist:
        return None
    return read


def _volumes_of(server: PerforceServer) -> list[ServerVolume]:
    try:
        return list(server.volumes.places.all())
    except ObjectDoesNotExist:
        return []
