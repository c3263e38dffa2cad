"""Mirrors with what has arrived there, and how far that is behind."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.catalog.freshness import behind_of, freshness_since
from provisioner.catalog.models import Snapshot, Template, references_of
from provisioner.catalog.overviews import TemplateOverview
from provisioner.catalog.queries import defaults_among, in_scope
from provisioner.catalog.retention import needs_of
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.mirrors.queries import AVAILABLE, OnItsWay, on_their_way, remarks_on
from provisioner.web.notices import Action
from provisioner.web.templatetags.cloneyard import count

CLONES_NAMED = 20
# What names a snapshot, and what says how far it is behind.
_SNAPSHOT_FIELDS = (
    *("name", "change", "quality", "created_at"),
    *("template_id", "is_complete"),
)


@dataclass(frozen=True, kw_only=True)
class MirrorOverview:
    """A mirror, and how far it is behind its template.

    `newest` is the newest snapshot there, and `snapshots` how many are there; `default`
    is what new workspaces at the template's site get. `snapshots_behind` counts the
    template's snapshots after `newest`, up to the default, and `changes_behind` the
    changes in between; None: unknown. `coming` is what is being transferred.
    `remark` says what is wrong with the ONTAP releases of both sites, "" for nothing.
    """

    mirror: Mirror
    newest: Snapshot | None
    snapshots: int
    default: Snapshot | None
    has_default: bool
    snapshots_behind: int | None
    changes_behind: int | None
    coming: OnItsWay | None
    remark: str = ""

    @property
    def is_moving(self) -> bool:
        return self.mirror.is_moving

    @property
    def behind(self) -> str:
        """How far it is behind the default snapshot, as a phrase."""
        if self.default is None:
            return "The template has no default snapshot"
        if self.has_default:
            return "Up to date"
        if self.newest is None:
            return "Nothing is there yet"
        if not self.snapshots_behind:
            return "Without the default snapshot"
        said = [count(self.snapshots_behind, "snapshot", "snapshots")]
        if self.changes_behind is not None:
            said.append(count(self.changes_behind, "change", "changes"))
        return f"{', '.join(said)} behind"

    @property
    def why_unrelated(self) -> str:
        """Why its mirror has no relationship, as far as that matters."""
        is_over = self.mirror.is_former_home or self.mirror.has_ended
        return "None" if is_over else "Not created yet"

    @property
    def behind_and_coming(self) -> str:
        """How far it is behind, and what is being transferred, as a phrase."""
        return (
            self.behind
            if self.coming is None
            else f"{self.behind}; {self.coming.text()}"
        )


@dataclass(frozen=True, kw_only=True)
class _Published:
    """What mirrors of a template are compared with.

    `behind` are changes that snapshots are behind the depot, by id, and
    `default_behind` those of the default; None: unknown. `times` are when the
    snapshots were published that people can get.
    """

    default: Snapshot | None
    default_behind: int | None
    behind: Mapping[int, int | None]
    times: Sequence[dt.datetime]


def overviews_of(mirrors: Sequence[Mirror]) -> list[MirrorOverview]:
    """Return mirrors with what is there, in eleven queries for all."""
    templates = list({each.template_id: each.template for each in mirrors}.values())
    references = references_of(templates)
    defaults, there = defaults_among(references), _snapshots_there(mirrors)
    behind = behind_of(snapshots[0] for snapshots in there.values())
    freshness, times = freshness_since(references), _publication_times(templates)
    coming = on_their_way(mirrors)
    remarks = remarks_on((each.template.site, each.site) for each in mirrors)
    published = {
        template.pk: _Published(
            default=defaults.get(template.pk),
            default_behind=known.changes if known else None,
            behind=behind,
            times=times[template.pk],
        )
        for template in templates
        for known in [freshness.get(template.pk)]
    }
    return [
        _overview(
            mirror,
            there.get(mirror.pk, []),
            published[mirror.template_id],
            coming=coming.get(mirror.pk),
            remark=remarks.get((mirror.template.site_id, mirror.site_id), ""),
        )
        for mirror in mirrors
    ]


def _overview(
    mirror: Mirror,
    snapshots: Sequence[Snapshot],
    published: _Published,
    *,
    coming: OnItsWay | None,
    remark: str = "",
) -> MirrorOverview:
    default, newest = published.default, snapshots[0] if snapshots else None
    changes = later = None
    if newest is not None and default is not None:
        first, last = newest.created_at, default.created_at
        later = sum(first < at <= last for at in published.times)
        behind = published.behind.get(newest.pk)
        if behind is not None and published.default_behind is not None:
            changes = max(behind - published.default_behind, 0)
    return MirrorOverview(
        mirror=mirror,
        newest=newest,
        snapshots=len(snapshots),
        default=default,
        has_default=default in snapshots,
        snapshots_behind=later,
        changes_behind=changes,
        coming=coming,
        remark=remark,
    )


def _snapshots_there(mirrors: Sequence[Mirror]) -> dict[int, list[Snapshot]]:
    """Return the snapshots that are there, newest first, by the mirror's id."""
    there = defaultdict(list)
    available = MirroredSnapshot.objects.filter(mirror__in=mirrors, state=AVAILABLE)
    named = (f"snapshot__{each}" for each in _SNAPSHOT_FIELDS)
    for mirrored in available.select_related("snapshot").only("mirror_id", *named):
        there[mirrored.mirror_id].append(mirrored.snapshot)
    return there


def _publication_times(templates: Sequence[Template]) -> dict[int, list[dt.datetime]]:
    """Return when the available snapshots were published, by the template's id."""
    times = defaultdict(list)
    snapshots = Snapshot.objects.available().complete().filter(template__in=templates)
    for template_id, created_at in snapshots.values_list("template_id", "created_at"):
        times[template_id].append(created_at)
    return times


def mirrors_ever(user: User) -> QuerySet[Mirror]:
    """Return the mirrors that a person may see, with those that were deleted."""
    mirrors = Mirror.with_deleted.filter(in_scope(user, by="template"))
    return mirrors.select_related(
        "template__site__perforce_server", "site__perforce_server"
    )


@dataclass(frozen=True, kw_only=True)
class MirrorsOfTemplate:
    """A template's mirrors, by site, and what its reader may do about them."""

    mirrors: list[MirrorOverview]
    actions: list[Action]

    @property
    def is_shown(self) -> bool:
        return bool(self.mirrors or self.actions)


def mirrors_of(overview: TemplateOverview) -> MirrorsOfTemplate:
    """Return what the page of a template shows of its mirrors, in five queries."""
    template, user = overview.template, overview.user
    mirrors = list(
        Mirror.objects.filter(template=template)
        .select_related("site")
        .only("template_id", "state", "trouble", "site__name")
        .order_by("site__name")
    )
    there = _snapshots_there(mirrors) if mirrors else {}
    coming = on_their_way(mirrors) if mirrors else {}
    lines, fresh = overview.snapshots if mirrors else [], overview.freshness
    snapshots = [line.snapshot for line in lines if line.snapshot.is_complete]
    offered = [snapshot for snapshot in snapshots if not snapshot.is_withdrawn]
    published = _Published(
        default=overview.default,
        default_behind=fresh.changes if fresh else None,
        behind={line.snapshot.pk: line.behind for line in lines},
        times=[each.created_at for each in offered],
    )
    may_create = permissions.can_manage_templates(user) and not template.is_archived
    create = f"{reverse('mirror-create')}?template={template.pk}"
    return MirrorsOfTemplate(
        mirrors=[
            _overview(
                each,
                there.get(each.pk, []),
                published,
                coming=coming.get(each.pk),
            )
            for each in mirrors
        ],
        actions=[Action(label="Create a mirror", url=create)] if may_create else [],
    )


def clones_of(mirror: Mirror) -> list[Any]:
    """Return the first workspaces, by name, that are clones of a mirror's snapshots."""
    snapshots = list(Snapshot.objects.filter(template=mirror.template_id))
    clones = [
        clone
        for rows in needs_of(snapshots)
        for clone in rows.filter(site=mirror.site_id)
        .select_related("owner")
        .order_by("name")[:CLONES_NAMED]
    ]
    return sorted(clones, key=lambda clone: clone.name)[:CLONES_NAMED]
