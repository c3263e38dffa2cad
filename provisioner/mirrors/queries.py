"""Which mirrors a person may see, and where a template's snapshots can be cloned."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.models.snapshots import SnapshotQuerySet
from provisioner.catalog.queries import default_snapshot, in_scope
from provisioner.catalog.retention import needs_of
from provisioner.engine.models import Operation, Step
from provisioner.lib import clocks
from provisioner.lib.sizes import size_text
from provisioner.lib.times import rough_text
from provisioner.mirrors.estimates import Ended, Estimate, estimate
from provisioner.mirrors.models import FORMER_HOMES, Mirror, MirroredSnapshot
from provisioner.mirrors.refusals import SnapshotNotAtSite
from provisioner.mirrors.releases import remark_on
from provisioner.sites.models import Site, SiteCapacity

AVAILABLE = MirroredSnapshot.State.AVAILABLE
TRANSFERS_AVERAGED = 3


def mirrors_visible_to(user: User) -> QuerySet[Mirror]:
    """Return the mirrors of all templates that a person may see."""
    mirrors = Mirror.objects.filter(in_scope(user, by="template"))
    return mirrors.select_related(
        "template__site__perforce_server", "site__perforce_server"
    )


def mirrors_in_trouble() -> QuerySet[Mirror]:
    """Return the mirrors that failed, or that somebody changed in ONTAP."""
    return Mirror.objects.filter(Q(state=Mirror.State.FAILED) | ~Q(trouble=""))


def snapshots_at(template: Template, site: Site) -> SnapshotQuerySet:
    """Return the template's snapshots that workspaces can be cloned from at a site."""
    snapshots = Snapshot.objects.available().filter(template=template)
    if site.pk == template.site_id:
        return snapshots
    return snapshots.filter(pk__in=_available(mirror__site=site).values("snapshot"))


def at_site(name: str) -> Q:
    """Return the condition for templates that are, or have a mirror, at a site."""
    mirrors = Mirror.objects.filter(site__name=name)
    return Q(site__name=name) | Q(pk__in=mirrors.values("template"))


def default_at(template: Template, site: Site, *, quality: str = "") -> Snapshot | None:
    """Return the snapshot that a new workspace at a site gets, or None."""
    if site.pk == template.site_id:
        return default_snapshot(template, quality=quality)
    return mirrored_defaults(site, [template], quality=quality).get(template.pk)


def mirrored_defaults(
    site: Site, templates: Collection[Template], *, quality: str = ""
) -> dict[int, Snapshot]:
    """Return what new workspaces get from mirrors at a site, by template id.

    That is a template's held snapshot alone if it has one, else the newest that is
    there and good enough.
    """
    held_one = Snapshot.objects.filter(
        template=OuterRef("template"), held_at__isnull=False
    ).exclude(pk=OuterRef("pk"))
    found = (
        Snapshot.objects.default_first(at_least=quality)
        .filter(
            ~Exists(held_one),
            pk__in=_available(mirror__site=site).values("snapshot"),
            template__in=templates,
        )
        .order_by("template_id", "-created_at", "-id")
        .distinct("template_id")
    )
    return {snapshot.template_id: snapshot for snapshot in found}


def _available(**of: Any) -> QuerySet[MirroredSnapshot]:
    """Return the mirrored snapshots that can be cloned."""
    there = MirroredSnapshot.objects.filter(state=AVAILABLE, **of)
    return there.exclude(
        mirror__state__in=(Mirror.State.DELETING, *FORMER_HOMES)
    ).order_by()


def can_be_cloned(*, template: str, snapshot: str, site: str) -> Q:
    """Return the condition for rows whose snapshot can be cloned at their site.

    The arguments are the names of their fields.
    """
    at_mirror = _available(
        mirror__template=OuterRef(template),
        mirror__site=OuterRef(site),
        snapshot=OuterRef(snapshot),
    )
    at_home = Q(**{f"{template}__site": F(site), f"{snapshot}__deleted_at": None})
    return Q(Exists(at_mirror)) | at_home


def is_mirrored_to(template: Template, site: Site) -> bool:
    """Return whether a mirror brings a template's snapshots to a site."""
    mirrors = Mirror.objects.filter(template=template, site=site)
    return mirrors.exclude(state__in=(Mirror.State.DELETING, *FORMER_HOMES)).exists()


def mirror_sites(template: Template) -> QuerySet[Site]:
    """Return the sites with a mirror of the template that has snapshots."""
    there = _available(mirror__template=template)
    sites = Site.objects.filter(pk__in=there.values("mirror__site"))
    return sites.select_related("perforce_server").order_by("name")


def sites_with_mirrors(template_ids: Iterable[int]) -> dict[int, set[str]]:
    """Return what sites with mirrors that have snapshots are called, by template id."""
    ids, names = set(template_ids), dict[int, set[str]]()
    if not ids:
        return names
    there = _available(mirror__template__in=ids)
    site = "mirror__site"
    rows = there.values_list("mirror__template", f"{site}__title", f"{site}__name")
    for template_id, title, name in rows.distinct():
        names.setdefault(template_id, set()).add(title or name)
    return names


@dataclass(frozen=True, kw_only=True)
class OnItsWay:
    """A snapshot that is being transferred; `estimate` is None if nothing is known."""

    mirrored: MirroredSnapshot
    estimate: Estimate | None

    def text(self, where: str = "") -> str:
        """Return it as a phrase: "change 5023 in about 3 min (1.2 GiB left)"."""
        change = f"change {self.mirrored.snapshot.change}{where}"
        if self.estimate is None:
            return f"{change} is being transferred"
        time, left = rough_text(self.estimate.seconds), self.estimate.bytes_left
        return f"{change} in about {time} ({size_text(left)} left)"


def on_their_way(mirrors: Iterable[Mirror] | QuerySet[Mirror]) -> dict[int, OnItsWay]:
    """Return what is being transferred, by the mirror's id, in at most three queries.

    The mirrors that get nothing are left out.
    """
    rows = (
        MirroredSnapshot.objects.filter(
            mirror__in=mirrors, state=MirroredSnapshot.State.TRANSFERRING
        )
        .select_related("snapshot", "mirror__template", "mirror__site")
        .only(
            *("snapshot__change", "mirror__throttle_kilobytes", "mirror__site__name"),
            *("mirror__template__used_bytes",),
        )
        .order_by()
    )
    found = {mirrored.mirror_id: mirrored for mirrored in rows}
    if not found:
        return {}
    past, running = _past_transfers(found), _running_transfers(found)
    now = clocks.database_now()
    return {
        pk: OnItsWay(
            mirrored=mirrored,
            estimate=_estimate_of(
                mirrored.mirror, past=past.get(pk, []), step=running.get(pk), now=now
            ),
        )
        for pk, mirrored in found.items()
    }


def _estimate_of(
    mirror: Mirror, *, past: list[Ended], step: Step | None, now: dt.datetime
) -> Estimate | None:
    done = step.progress.get("done", 0) if step else 0
    seconds = 0.0
    # A later attempt may follow a transfer that an earlier one began.
    if step is not None and step.attempt == 1 and step.started_at is not None:
        seconds = (now - step.started_at).total_seconds()
    return estimate(
        past=past,
        whole_bytes=mirror.template.used_bytes,
        done_bytes=done,
        running_seconds=seconds,
        most_per_second=mirror.throttle_kilobytes * 1024 or None,
    )


def _past_transfers(mirror_ids: Collection[int]) -> dict[int, list[Ended]]:
    """Return the last transfers to each mirror, newest first."""
    past = defaultdict[int, list[Ended]](list)
    rows = MirroredSnapshot.objects.filter(
        mirror__in=mirror_ids, bytes__gt=0, seconds__gt=0, arrived_at__isnull=False
    ).order_by("-arrived_at")
    for pk, size, seconds in rows.values_list("mirror", "bytes", "seconds"):
        if len(past[pk]) < TRANSFERS_AVERAGED:
            past[pk].append(Ended(bytes=size, seconds=seconds))
    return past


def _running_transfers(mirror_ids: Collection[int]) -> dict[int, Step]:
    steps = Step.objects.filter(
        operation__subject__mirror__in=mirror_ids,
        operation__state=Operation.State.RUNNING,
        name="transfer",
        state=Step.State.RUNNING,
    )
    named = steps.annotate(mirror=F("operation__subject__mirror"))
    return {
        vars(step)["mirror"]: step
        for step in named.only("attempt", "started_at", "progress").order_by()
    }


def lock_mirror_of(snapshot: Snapshot, site: Site) -> None:
    """Lock the mirror that has a snapshot until a row of ours that needs it exists.

    Nothing is locked at the template's own site.

    Raises: SnapshotNotAtSite.
    """
    template = snapshot.template
    if site.pk == template.site_id:
        return
    mirrors = Mirror.objects.filter(template=template, site=site)
    locked = mirrors.select_for_update(of=("self",), no_key=True).first()
    is_there = snapshots_at(template, site).filter(pk=snapshot.pk).exists()
    if locked is None or not is_there:
        raise SnapshotNotAtSite(snapshot=snapshot.name, site=site.name)


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


_other_clones: list[Callable[[Mirror], QuerySet[Any]]] = []


def register_clones(rows: Callable[[Mirror], QuerySet[Any]]) -> None:
    """Register rows of a feature whose volumes are clones of a mirror.

    Each row is a copy of a `workspace`.
    """
    _other_clones.append(rows)


def copies_at(mirror: Mirror, *, most: int) -> tuple[int, list[Any]]:
    """Return how many workspaces have copies that are clones of a mirror.

    And `most` of them, the first by name.
    """
    found = [rows(mirror) for rows in _other_clones]
    first = [
        row.workspace
        for rows in found
        for row in rows.select_related("workspace__owner").order_by("workspace__name")[
            :most
        ]
    ]
    return sum(rows.count() for rows in found), first[:most]


def remarks_on(mirrors: Iterable[tuple[Site, Site]]) -> dict[tuple[int, int], str]:
    """Return what is wrong with the ONTAP releases of pairs of sites, with the remedy.

    A pair is the template's site and the mirror's. Those without a remark are left out.
    """
    pairs = set(mirrors)
    sites = {site for pair in pairs for site in pair}
    measured = SiteCapacity.objects.filter(site__in=sites)
    versions = dict(measured.values_list("site", "ontap_version"))
    remarks = {
        (home.pk, site.pk): remark_on(
            home=home.name,
            home_version=versions.get(home.pk, ""),
            site=site.name,
            site_version=versions.get(site.pk, ""),
        )
        for home, site in pairs
    }
    return {pair: remark for pair, remark in remarks.items() if remark}


def has_clones(mirror: Mirror) -> bool:
    """Return whether volumes at the mirror's site are clones of its snapshots."""
    if any(rows(mirror).exists() for rows in _other_clones):
        return True
    snapshots = Snapshot.objects.filter(template=mirror.template_id)
    needs = needs_of(list(snapshots))
    return any(rows.filter(site=mirror.site_id).exists() for rows in needs)


def next_client_number(template: Template, site: Site) -> int:
    """Return the number of the client with which a template is built at a site.

    A client that is bound to an edge, or exists only at a lost server, cannot be used
    at another server.

    Source: p4 reload; "p4 client" on ServerID.
    """
    moves = template.perforce_server.pk != site.perforce_server_id
    return template.client_number + moves
