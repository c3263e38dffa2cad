"""Admission: check limits before anything is made, and show them to people.

What counts:

- Clones, volumes and snapshots: our rows, which are always up to date, and what others
  have on the SVM as last measured. A workspace counts until it is purged:
  one that failed can be tried again, one in the trash is still a volume.
- Members of a warm pool exist, so they count for all of these; nobody has them yet,
  so it counts for no quota.
- A quota of workspaces: those that are neither in the trash nor on their way out of
  it. A quota of bytes: what purging them would free as last measured, the trash
  included. Bringing a workspace back from the trash is never refused by a quota.
- Space: as measured, of the aggregate that the volume is, or will be, in. A measurement
  older than STALE_AFTER, or none, refuses nobody: the page of limits says so, and
  ONTAP's own refusal comes in the same words.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from django.db import connection
from django.db.models import Count, Q

from provisioner.accounts.models import Quota, User
from provisioner.catalog.models import Snapshot, Template, VolumePolicy
from provisioner.catalog.volume_policies import size_with_headroom
from provisioner.copies.models import WorkspaceCopy
from provisioner.gateways.ontap.types import most_inodes
from provisioner.lib import clocks
from provisioner.lib.databases import pass_one_by_one
from provisioner.lib.limits import (
    Limit,
    refuse_what_is_near,
    refuse_what_is_reached,
)
from provisioner.limits.tallies import (
    CountedMirror,
    CountedTemplate,
    Tallies,
    Tally,
    held_by,
    held_in_team,
)
from provisioner.mirrors.models import ENDED, Mirror
from provisioner.sites.models import AggregateSpace, Site, SiteCapacity
from provisioner.sites.queries import aggregate_for_new
from provisioner.workspaces.models import Workspace

STALE_AFTER = dt.timedelta(minutes=15)

# FlexClones of a volume, and of a snapshot. Every release with this REST API has the
# higher figure; 255 was that of 7-mode.
CLONES_PER_VOLUME = 32_767
CLONES_PER_VOLUME_BEFORE_9 = 255


def check_admission(
    *, by: User, template: Template, snapshot: Snapshot, site: Site, purpose: str
) -> None:
    """Refuse a workspace for a purpose beyond a limit.

    Call it in the transaction that writes the workspace's row, before it does. Requests
    for the same site, or of the same team or person, are serialized until that
    transaction ends, so that two cannot both take the last place.

    Raises: LimitReached.
    """
    _one_at_a_time(site=site, team_id=by.team_id)
    of_the_site = _limits_of_place(template, snapshot, site=site, purpose=purpose)
    _one_at_a_time_where_bounded(by)
    refuse_what_is_reached([*limits_of_token(by), *quota_limits(by), *of_the_site])


def check_claim(*, by: User) -> None:
    """Refuse a pool's member to somebody whose quota is reached.

    The member exists already, so only quotas and the token's scope count. Users without
    a quota take no lock; for others, call it as late as possible.

    Raises: LimitReached.
    """
    if by.team is not None and _is_bounded(_bounds_of(by.team)):
        pass_one_by_one("admission_team", by.team.pk)
    _one_at_a_time_where_bounded(by)
    refuse_what_is_reached([*limits_of_token(by), *quota_limits(by)])


def check_pooling(
    *, template: Template, snapshot: Snapshot, site: Site, purpose: str
) -> None:
    """Refuse a new pool member beyond a limit, or near one.

    The last fifth of each limit is reserved for requests. Call it in the transaction
    that writes the row, before it does.

    Raises: LimitReached.
    """
    pass_one_by_one("admission_site", site.pk)
    limits = _limits_of_place(template, snapshot, site=site, purpose=purpose)
    refuse_what_is_reached(limits)
    refuse_what_is_near(limits)


def check_build(*, template: Template) -> None:
    """Refuse a build without room for its snapshot, or a first build for its volume.

    Call it in the transaction that writes the build's operation.

    Raises: LimitReached.
    """
    _one_at_a_time(site=template.site, team_id=None)
    place = template.aggregate or template.site.aggregate
    if not template.volume_uuid:
        place = template.aggregate or aggregate_for_new(template.site)
    limits = [snapshot_limit(template), _space(_known(template.site), place)]
    if template.state == Template.State.NEW:
        limits = site_limits(
            template.site, aggregate=place, needed_bytes=template.volume_size_bytes
        )
    refuse_what_is_reached(limits)


def check_mirror(template: Template, *, site: Site, aggregate: str) -> None:
    """Refuse a mirror whose volume would be beyond a limit of its site.

    `aggregate` is "" if the site chooses. Call it in the transaction that writes the
    mirror's row, before it does.

    Raises: LimitReached.
    """
    _one_at_a_time(site=site, team_id=None)
    size = template.actual_size_bytes or template.volume_size_bytes
    place = aggregate or aggregate_for_new(site)
    refuse_what_is_reached(site_limits(site, aggregate=place, needed_bytes=size))


def check_copy(workspace: Workspace, *, site: Site) -> None:
    """Refuse a copy of a workspace whose clone would be beyond a limit of its site.

    Call it in the transaction that begins its first transfer.

    Raises: LimitReached.
    """
    _one_at_a_time(site=site, team_id=None)
    refuse_what_is_reached(
        _limits_of_place(
            workspace.template, workspace.snapshot, site=site, purpose=None
        )
    )


def _one_at_a_time(*, site: Site, team_id: int | None) -> None:
    """Serialize requests until the transaction ends; lock teams before sites."""
    if team_id is not None:
        pass_one_by_one("admission_team", team_id)
    pass_one_by_one("admission_site", site.pk)


def _one_at_a_time_where_bounded(user: User) -> None:
    """Serialize requests of a person and their team, if they have a quota."""
    has_bounded_token = user.scope is not None and user.scope.max_workspaces is not None
    if has_bounded_token or _is_bounded(_bounds_of(user)):
        pass_one_by_one("admission_owner", user.pk)


# --- people


def quota_limits(user: User) -> list[Limit]:
    """Return the quotas of a person and their team, if any."""
    own, team = _bounds_of(user), user.team
    if team is None or not _is_bounded(_bounds_of(team)):
        is_bounded = _is_bounded(own)
        return _of_user(user.username, own, held_by(user)) if is_bounded else []
    held, of_team = held_in_team(user)
    return [
        *_of_user(user.username, own, held),
        *_of_team(team.name, _bounds_of(team), of_team),
    ]


def limits_of_token(user: User) -> list[Limit]:
    """Return the limit of the current token, if it has one."""
    scope = user.scope
    if scope is None or scope.max_workspaces is None:
        return []
    there = scope.workspaces.not_put_away().count()
    return [
        Limit(
            code="token_workspaces",
            subject=str(scope),
            used=there,
            allowed=scope.max_workspaces,
        )
    ]


_HAS_QUOTA = Q(max_workspaces__isnull=False) | Q(max_unique_bytes__isnull=False)
_QUOTA = ("pk", "max_workspaces", "max_unique_bytes")


def team_limits(tallies: Tallies) -> list[Limit]:
    """Return all quotas of teams."""
    nothing, held, limits = Tally(), tallies.by_team, list[Limit]()
    for pk, name, *most in tallies.teams:
        limits += _of_team(name, Bounds(*most), held.get(pk, nothing))
    return limits


def people_limits(tallies: Tallies) -> list[Limit]:
    """Return all quotas of people, in one query."""
    people = User.objects.filter(_HAS_QUOTA, is_active=True).order_by("username")
    nothing, held, limits = Tally(), tallies.by_owner, list[Limit]()
    for pk, *most, name in people.values_list(*_QUOTA, "username"):
        limits += _of_user(name, Bounds(*most), held.get(pk, nothing))
    return limits


class Bounds(NamedTuple):
    """The quotas of a person or team; None: no quota."""

    workspaces: int | None
    unique_bytes: int | None


def _bounds_of(quota: Quota) -> Bounds:
    return Bounds(quota.max_workspaces, quota.max_unique_bytes)


def _is_bounded(most: Bounds) -> bool:
    return most != Bounds(None, None)


def _of_user(username: str, most: Bounds, tally: Tally) -> list[Limit]:
    return _quotas("quota", username, most, tally)


def _of_team(name: str, most: Bounds, tally: Tally) -> list[Limit]:
    return _quotas("team_quota", name, most, tally)


def _quotas(code: str, subject: str, most: Bounds, tally: Tally) -> list[Limit]:
    limits = []
    if most.workspaces is not None:
        limits.append(Limit(f"{code}_workspaces", subject, tally.held, most.workspaces))
    if most.unique_bytes is not None:
        taken, allowed = tally.held_bytes, most.unique_bytes
        limits.append(Limit(f"{code}_bytes", subject, taken, allowed, is_bytes=True))
    return limits


# --- templates and snapshots


_DEVELOPMENT = Workspace.Purpose.DEVELOPMENT


class Counted(NamedTuple):
    """Our clones of a volume and of its snapshot, and our volumes.

    Copies of workspaces are clones, too. Independent workspaces count only as volumes.
    """

    clones: int
    clones_of_snapshot: int
    volumes: int


def _limits_of_place(
    template: Template, snapshot: Snapshot, *, site: Site, purpose: str | None
) -> list[Limit]:
    """Return the limits on one more clone for a purpose, whoever requests it.

    None: for a copy of a workspace, which has no headroom.
    """
    at_site = template.workspaces.clones().filter(site=site)
    copies = WorkspaceCopy.objects.with_volume().filter(
        workspace__template=template, site=site
    )
    of_snapshot = Q(workspace__snapshot=snapshot)
    of_volume = Count("pk")
    ours = at_site.aggregate(
        volume=of_volume, snapshot=Count("pk", filter=Q(snapshot=snapshot))
    )
    beside = copies.aggregate(
        volume=of_volume, snapshot=Count("pk", filter=of_snapshot)
    )
    return place_limits(
        _known(site),
        template,
        snapshot,
        counted=Counted(
            ours["volume"] + beside["volume"],
            ours["snapshot"] + beside["snapshot"],
            _volumes_of_ours(site),
        ),
        is_for_builds=None if purpose is None else purpose != _DEVELOPMENT,
    )


def place_limits(
    known: Known,
    template: Template,
    snapshot: Snapshot,
    *,
    counted: Counted,
    is_for_builds: bool | None,
) -> list[Limit]:
    """Return the limits on one more clone of a snapshot, counting everything.

    Clones of others are measured only at the template's own site. A clone has the
    headroom of its purpose; None: the least that one has for any purpose.
    """
    size = size_with_headroom(template, known.policies, is_for_builds=is_for_builds)
    is_home = known.site.pk == template.site_id
    others = template.clones_of_others if is_home else 0
    return [
        _clones(known, template.name, used=counted.clones + others),
        Limit(
            code="snapshot_clone_limit",
            subject=snapshot.name,
            used=counted.clones_of_snapshot
            + (snapshot.clones_of_others if is_home else 0),
            allowed=known.clones_allowed,
        ),
        _volumes(known, ours=counted.volumes),
        *_limits_in(
            known,
            (template.aggregate if is_home else known.mirror_places.get(template.pk))
            or known.site.aggregate,
            needed_bytes=size,
        ),
    ]


def snapshot_limit(template: Template) -> Limit:
    """Return how many snapshots the template's volume has, including foreign ones."""
    ours = template.snapshots.there().count()
    known = _known(template.site)
    return _snapshots(known, template, ours=ours)


def _template_limits(
    known: Known, tallies: Tallies, templates: Sequence[CountedTemplate]
) -> list[Limit]:
    """Return the limits of templates that have a volume."""
    nothing, of_each = Tally(), tallies.by_place
    limits = []
    for each in templates:
        there = of_each.get((each.pk, each.site_id), nothing)
        clones = there.clones - there.independent
        clones += tallies.copies[each.pk, each.site_id]
        limits += [
            _clones(known, each.name, used=clones + each.clones_of_others),
            _snapshots(known, each, ours=each.snapshots),
        ]
        if each.actual_size_bytes is not None:
            limits.append(_inodes(each, size_bytes=each.actual_size_bytes))
    return limits


def _mirror_limits(
    known: Known, tallies: Tallies, mirrors: Sequence[CountedMirror]
) -> Iterator[Limit]:
    """Yield the limits of the volumes of a site's mirrors."""
    for mirror in mirrors:
        subject = f"{mirror.template} (mirror)"
        there = tallies.by_place.get((mirror.template_id, known.site.pk), Tally())
        clones = there.clones - there.independent
        clones += tallies.copies[mirror.template_id, known.site.pk]
        yield _clones(known, subject, used=clones)
        yield Limit(
            code="snapshot_limit",
            subject=subject,
            used=mirror.snapshots,
            allowed=known.site.snapshots_per_volume,
        )


def _clones(known: Known, template: str, *, used: int) -> Limit:
    return Limit(
        code="clone_limit",
        subject=template,
        used=used,
        allowed=known.clones_allowed,
    )


def _snapshots(
    known: Known, template: Template | CountedTemplate, *, ours: int
) -> Limit:
    return Limit(
        code="snapshot_limit",
        subject=template.name,
        used=max(ours, template.snapshots_in_volume),
        allowed=known.site.snapshots_per_volume,
    )


def _inodes(template: CountedTemplate, *, size_bytes: int) -> Limit:
    """Return the used and the maximum inodes of the volume."""
    return Limit(
        code="inode_limit",
        subject=template.name,
        used=template.used_inodes,
        allowed=most_inodes(size_bytes),
    )


# --- sites


@dataclass(frozen=True, kw_only=True)
class Known:
    """A site with its measurement; `fresh` is that measurement only if it is recent.

    `places` are the aggregates of the SVM by name, as recently measured, too.
    `promised_since_bytes` is the total size of the volumes created in each after it.
    `policies` are those of its volumes, where sizes are limited.
    """

    site: Site
    measured: SiteCapacity | None
    fresh: SiteCapacity | None
    places: Mapping[str, AggregateSpace]
    promised_since_bytes: Mapping[str, int]
    policies: Sequence[VolumePolicy] = ()

    @cached_property
    def clones_allowed(self) -> int:
        if self.site.clones_per_volume is not None:
            return self.site.clones_per_volume
        version = self.measured.ontap_version if self.measured else ""
        return clones_allowed_by(version)

    @cached_property
    def mirror_places(self) -> dict[int, str]:
        """The aggregates of the site's mirrors by template id, read when needed."""
        mirrors = Mirror.objects.filter(site=self.site)
        places = mirrors.values_list("template", "aggregate", "chosen_aggregate")
        return {template: place or chosen for template, place, chosen in places}

    @property
    def volumes_allowed(self) -> int | None:
        limits = [self.site.volumes_per_svm]
        if self.measured is not None:
            limits.append(self.measured.max_volumes)
        return min((limit for limit in limits if limit is not None), default=None)


def clones_allowed_by(version: str) -> int:
    """Return how many clones a volume may have in an ONTAP release ("9.16.1")."""
    snapshot = re.match(r"\d+", version)
    if snapshot is not None and int(snapshot[0]) < 9:
        return CLONES_PER_VOLUME_BEFORE_9
    return CLONES_PER_VOLUME


def _known(site: Site) -> Known:
    measured = SiteCapacity.objects.filter(site=site).first()
    return known_of({site: measured})[site.pk]


def known_of(measured: Mapping[Site, SiteCapacity | None]) -> dict[int, Known]:
    """Return the measurements of each site, by its id.

    Three queries, and one more if a site limits the sizes of its volumes.
    """
    oldest = clocks.database_now() - STALE_AFTER
    fresh = {
        site: capacity
        for site, capacity in measured.items()
        if capacity is not None and (capacity.measured_at or oldest) > oldest
    }
    places = _places(fresh, oldest=oldest)
    promised = _promised_since(list(fresh.values()))
    policies = _policies([site for site in fresh if site.overcommit_percent])
    return {
        site.pk: Known(
            site=site,
            measured=capacity,
            fresh=fresh.get(site),
            places=places[site.pk],
            promised_since_bytes=promised[site.pk],
            policies=policies[site.pk],
        )
        for site, capacity in measured.items()
    }


def _policies(sites: list[Site]) -> dict[int, list[VolumePolicy]]:
    """Return the policies of volumes by the id of their site; no query for no site."""
    policies = defaultdict[int, list[VolumePolicy]](list)
    if sites:
        for policy in VolumePolicy.objects.filter(site__in=sites):
            policies[policy.site_id].append(policy)
    return policies


def _places(
    fresh: Mapping[Site, SiteCapacity], *, oldest: dt.datetime
) -> dict[int, dict[str, AggregateSpace]]:
    """Return the aggregates of each site by name, by the site's id."""
    places = defaultdict[int, dict[str, AggregateSpace]](dict)
    rows = AggregateSpace.objects.filter(site__in=fresh, measured_at__gt=oldest)
    for row in rows.order_by("name"):
        places[row.site_id][row.name] = row
    for site, capacity in fresh.items():
        if capacity.aggregate_size_bytes:
            own = places[site.pk].setdefault(
                site.aggregate, AggregateSpace(name=site.aggregate)
            )
            own.size_bytes = capacity.aggregate_size_bytes
            own.available_bytes = own.size_bytes - capacity.aggregate_used_bytes
            own.provisioned_bytes = capacity.provisioned_bytes
    return places


def site_limits(
    site: Site, *, aggregate: str = "", needed_bytes: int = 1
) -> list[Limit]:
    """Return the limits on one more volume of a size in an aggregate of a site."""
    known = _known(site)
    place = aggregate or site.aggregate
    return [
        _volumes(known, ours=_volumes_of_ours(site)),
        *_limits_in(known, place, needed_bytes=needed_bytes),
    ]


def all_limits_of_site(known: Known, tallies: Tallies) -> list[Limit]:
    """Return the limits of a measured site, its templates and mirrors."""
    templates = [each for each in tallies.templates if each.site_id == known.site.pk]
    with_volume = [each for each in templates if each.has_volume]
    here = known.site.pk
    mirrors = tallies.mirrors.get(here, [])
    clones = sum(
        there.clones for (_, site), there in tallies.by_place.items() if site == here
    )
    copies = sum(number for (_, site), number in tallies.copies.items() if site == here)
    ours = clones + len(with_volume) + len(mirrors) + copies
    return [
        _volumes(known, ours=ours),
        *_limits_of_nodes(known),
        *_space_limits(known),
        *_template_limits(known, tallies, with_volume),
        *_mirror_limits(known, tallies, mirrors),
        *(
            Limit(
                code="workspace_snapshots_bytes",
                subject=workspace.name,
                used=held.used_bytes,
                allowed=held.allowed_bytes,
                is_bytes=True,
                as_of=workspace.measured_at,
            )
            for workspace, held in tallies.near_their_bound[here]
        ),
    ]


def _volumes_of_ours(site: Site) -> int:
    workspaces = site.workspaces.there().count()
    templates = site.templates.exclude(state=Template.State.NEW).count()
    mirrors = Mirror.objects.filter(site=site).count()
    copies = WorkspaceCopy.objects.with_volume().filter(site=site).count()
    return workspaces + templates + mirrors + copies


def _space_limits(known: Known) -> Iterator[Limit]:
    """Yield the limits of each aggregate, the site's own one first."""
    own = known.site.aggregate
    for name in [own, *(name for name in known.places if name != own)]:
        yield _space(known, name)
        yield _promised(known, name, needed_bytes=1)


def _limits_in(known: Known, aggregate: str, *, needed_bytes: int) -> list[Limit]:
    """Return the limits on one more volume in an aggregate."""
    place = known.places.get(aggregate)
    return [
        _space(known, aggregate),
        _promised(known, aggregate, needed_bytes=needed_bytes),
        *([_of_node(known, place)] if place is not None and place.node else []),
    ]


def _limits_of_nodes(known: Known) -> list[Limit]:
    nodes = {place.node: place for place in known.places.values() if place.node}
    return [_of_node(known, place) for place in nodes.values()]


def _of_node(known: Known, place: AggregateSpace) -> Limit:
    return Limit(
        code="node_volume_limit",
        subject=str(known.site),
        used=place.node_volumes,
        allowed=known.site.volumes_per_node,
        as_of=place.measured_at,
        part=place.node,
    )


def _volumes(known: Known, *, ours: int) -> Limit:
    of_others = known.measured.volumes_of_others if known.measured else 0
    return Limit(
        code="volume_limit",
        subject=str(known.site),
        used=ours + of_others,
        allowed=known.volumes_allowed,
    )


def _space(known: Known, aggregate: str) -> Limit:
    place = known.places.get(aggregate)
    usable = 100 - known.site.free_percent
    return Limit(
        code="space_low",
        subject=str(known.site),
        used=place.used_bytes if place else None,
        allowed=place.size_bytes * usable // 100 if place else None,
        is_bytes=True,
        as_of=known.measured.measured_at if known.measured else None,
        part=_part(known, aggregate),
    )


def _promised(known: Known, aggregate: str, *, needed_bytes: int) -> Limit:
    """Return how far the volumes may grow, including those not yet measured."""
    place, percent = known.places.get(aggregate), known.site.overcommit_percent
    used = allowed = None
    if place is not None:
        since = known.promised_since_bytes.get(aggregate, 0)
        used = place.provisioned_bytes + since
        if percent is not None:
            allowed = place.size_bytes * percent // 100
    return Limit(
        code="overcommitted",
        subject=str(known.site),
        used=used,
        allowed=allowed,
        needed=needed_bytes,
        is_bytes=True,
        as_of=known.measured.measured_at if known.measured else None,
        part=_part(known, aggregate),
    )


def _part(known: Known, aggregate: str) -> str:
    """Return what tells an aggregate from the site's own one."""
    return "" if aggregate == known.site.aggregate else aggregate


# The ORM takes longer to put this together than it takes to answer. A claimed one was
# created when it was made, whenever it was asked for. None was asked for before it was
# made, and for that, in a pool or out of it, is an index.
_PROMISED = """
    SELECT workspace.site_id, coalesce(
        nullif(
            CASE WHEN template.site_id = workspace.site_id THEN template.aggregate
            ELSE (
                SELECT max(coalesce(nullif(mirror.aggregate, ''), chosen_aggregate))
                FROM mirrors_mirror AS mirror
                WHERE mirror.template_id = template.id
                    AND mirror.site_id = workspace.site_id
                    AND mirror.state <> ALL(%(ended)s)
            ) END,
            ''
        ),
        site.aggregate
    ) AS aggregate, sum(
        coalesce(template.actual_size_bytes, template.volume_size_bytes)
        * (100 + coalesce(
            CASE WHEN workspace.purpose = %(development)s
            THEN coalesce(own.headroom_percent, usual.headroom_percent)
            ELSE coalesce(own.build_headroom_percent, usual.build_headroom_percent) END,
            0
        )) / 100
    )::bigint
    FROM workspaces_workspace AS workspace
    JOIN catalog_template AS template ON template.id = workspace.template_id
    JOIN sites_site AS site ON site.id = workspace.site_id
    LEFT JOIN catalog_volumepolicy AS own
        ON own.site_id = site.id AND own.template_id = template.id
    LEFT JOIN catalog_volumepolicy AS usual
        ON usual.site_id = site.id AND usual.template_id IS NULL
    JOIN unnest(%(sites)s::bigint[], %(times)s::timestamptz[])
        AS measured (site_id, at) ON measured.site_id = workspace.site_id
    WHERE workspace.state <> %(retired)s
        AND coalesce(workspace.made_ahead_at, workspace.created_at) > measured.at
        AND (
            (NOT workspace.is_pooled AND workspace.created_at > %(first)s)
            OR (workspace.is_pooled AND workspace.created_at > %(first)s)
        )
    GROUP BY 1, 2
"""


def _promised_since(
    measured: Collection[SiteCapacity],
) -> defaultdict[int, dict[str, int]]:
    """Return the total size of volumes newer than the measurement, with headroom.

    By the id of the site and the name of the aggregate.
    """
    promised = defaultdict[int, dict[str, int]](dict)
    known = {each.site_id: each.measured_at for each in measured if each.measured_at}
    if not known:
        return promised
    with connection.cursor() as cursor:
        cursor.execute(
            _PROMISED,
            {
                "sites": list(known),
                "times": list(known.values()),
                "first": min(known.values()),
                "retired": Workspace.State.RETIRED,
                "ended": list(ENDED),
                "development": _DEVELOPMENT,
            },
        )
        for site_id, aggregate, size_bytes in cursor.fetchall():
            promised[site_id][aggregate] = size_bytes
    return promised
