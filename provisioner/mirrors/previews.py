"""What a promotion leaves behind, and what a way back discards. No remote call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from provisioner.catalog.dependents import Found, needed_by
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.retention import needs_of
from provisioner.engine.models import Operation
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.mirrors.overviews import MirrorOverview, overviews_of
from provisioner.mirrors.queries import AVAILABLE, copies_at, next_to_transfer
from provisioner.sites.models import Site

NAMED = 50
_SHOWN_APART = ("mirrors", "workspaces")
NEWEST_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class PromotionPreview:
    """What becomes of a template when a mirror is promoted.

    `newest` is what new workspaces get then, with how far it is behind in `overview`.
    `lost` are snapshots that only the present home has, newest first; `held` is the one
    of them that holds the template. `operations` run at the present home; `workspaces`
    stay there, of which `named` are the first by name. `copied` counts the workspaces
    that are copied to the mirror, `named_copies` are the first: that goes on while
    their site answers. `needs` are others that need the template, such as warm pools.
    `others` are the other mirrors, which follow the new home.
    `obstacle` is what is against it, as a sentence, "" for nothing.
    """

    mirror: Mirror
    obstacle: str
    overview: MirrorOverview
    newest: MirroredSnapshot | None
    lost: list[Snapshot]
    held: Snapshot | None
    operations: list[Operation]
    workspaces: int
    named: list[Any]
    copied: int
    named_copies: list[Any]
    needs: list[Found]
    others: list[Mirror]

    @property
    def newest_lost(self) -> list[Snapshot]:
        return self.lost[:NEWEST_SHOWN]

    @property
    def older_lost(self) -> list[Snapshot]:
        return self.lost[NEWEST_SHOWN:]


def promotion_preview(mirror: Mirror) -> PromotionPreview:
    """Return what the promotion of a mirror leaves behind, and whom it affects."""
    template = mirror.template
    [overview] = overviews_of([mirror])
    arrived = mirror.snapshots.filter(state=AVAILABLE, snapshot__deleted_at=None)
    published = Snapshot.objects.there().filter(template=template)
    lost = list(published.exclude(pk__in=arrived.values("snapshot")))
    workspaces, named = clones_at(template, template.site)
    copied, named_copies = copies_at(mirror, most=NAMED)
    return PromotionPreview(
        mirror=mirror,
        obstacle=obstacle_to_promotion(mirror),
        overview=overview,
        newest=arrived.select_related("snapshot").first(),
        lost=lost,
        held=next((snapshot for snapshot in lost if snapshot.is_held), None),
        operations=_running_at_home(template),
        workspaces=workspaces,
        named=named,
        copied=copied,
        named_copies=named_copies,
        needs=[each for each in needed_by(template) if each.what not in _SHOWN_APART],
        others=list(
            Mirror.objects.filter(template=template)
            .exclude(pk=mirror.pk)
            .select_related("site")
            .order_by("site__name")
        ),
    )


def obstacle_to_promotion(mirror: Mirror) -> str:
    """Return what is against a promotion, as a sentence; "" for nothing."""
    template, site = mirror.template, mirror.site
    arrived = mirror.snapshots.filter(state=AVAILABLE, snapshot__deleted_at=None)
    if not arrived.exists():
        return f"No published snapshot has arrived at {site.name}."
    same_name = Template.objects.filter(site=site, name=template.name)
    if same_name.exclude(pk=template.pk).exists():
        return f"{site.name} has another template named {template.name}."
    owner = template.site.template_owner
    if site.template_owner != owner:
        return (
            f"The files belong to uid {owner.uid}, gid {owner.gid}, and {site.name} "
            f"builds as uid {site.template_uid}, gid {site.template_gid}. Set the same "
            "at both sites first."
        )
    return ""


def _running_at_home(template: Template) -> list[Operation]:
    """Return the builds of a template and the operations on its workspaces at home."""
    of_workspaces = Q(
        subject__workspace__template=template, subject__workspace__site=template.site
    )
    running = Operation.objects.filter(state=Operation.State.RUNNING)
    found = running.filter(Q(subject__template=template) | of_workspaces)
    return list(found.select_related("requested_by").order_by("pk")[:NAMED])


@dataclass(frozen=True, kw_only=True)
class WayBackPreview:
    """What becomes of a former home when it follows the new one.

    `common` is the newest snapshot of both, as far as Cloneyard knows; the first step
    asks ONTAP. `discarded` are snapshots that only the former home has, of which clones
    need the ones in `needed`. `waiting` is what is transferred first.
    """

    mirror: Mirror
    common: Snapshot | None
    discarded: list[Snapshot]
    needed: list[Snapshot]
    workspaces: int
    named: list[Any]
    waiting: Snapshot | None


def way_back_preview(mirror: Mirror) -> WayBackPreview:
    """Return what a former home loses when it is re-established."""
    common = _common(mirror)
    workspaces, named = clones_at(mirror.template, mirror.site)
    return WayBackPreview(
        mirror=mirror,
        common=common,
        discarded=_later_than(mirror, common),
        needed=discarded_with_clones(mirror),
        workspaces=workspaces,
        named=named,
        waiting=next_to_transfer(mirror),
    )


def discarded_with_clones(mirror: Mirror) -> list[Snapshot]:
    """Return the snapshots that a resync would discard although clones need them."""
    needed = []
    for snapshot in _later_than(mirror, _common(mirror)):
        rows = needs_of([snapshot])
        if any(each.filter(site=mirror.site_id).exists() for each in rows):
            needed.append(snapshot)
    return needed


def _common(mirror: Mirror) -> Snapshot | None:
    there = mirror.snapshots.filter(state=AVAILABLE, snapshot__deleted_at=None)
    newest = there.select_related("snapshot").first()
    return None if newest is None else newest.snapshot


def _later_than(mirror: Mirror, common: Snapshot | None) -> list[Snapshot]:
    """Return what only the former home has, and has since the common snapshot."""
    only_there = MirroredSnapshot.State.ONLY_THERE
    found = mirror.snapshots.filter(state=only_there).select_related("snapshot")
    if common is not None:
        found = found.filter(snapshot__created_at__gt=common.created_at)
    return [each.snapshot for each in found]


def clones_at(template: Template, site: Site) -> tuple[int, list[Any]]:
    """Return how many workspaces at a site are clones of a template's snapshots.

    And the first of them, by name, with their owners.
    """
    snapshots = list(Snapshot.objects.filter(template=template))
    found = [rows.filter(site=site) for rows in needs_of(snapshots)]
    named = [
        row
        for rows in found
        for row in rows.select_related("owner").order_by("name")[:NAMED]
    ]
    return (
        sum(rows.count() for rows in found),
        sorted(named, key=lambda row: row.name)[:NAMED],
    )
