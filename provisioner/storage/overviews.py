"""What holds each snapshot, whose end would free it, and the ceilings of sites."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template, VolumePolicy
from provisioner.catalog.retention import Pins, pins_of_all
from provisioner.copies.queries import IS_SENT
from provisioner.lib.rows import with_words
from provisioner.sites.models import Ceiling, Site
from provisioner.storage.models import SnapshotSize, SplitPolicy
from provisioner.workspaces.models import Workspace

NAMED = 3


@dataclass(frozen=True, kw_only=True)
class HeldSnapshot:
    """A snapshot, its size if it was measured, and what holds it."""

    pins: Pins
    size: SnapshotSize | None

    @property
    def snapshot(self) -> Snapshot:
        return self.pins.snapshot

    @property
    def size_bytes(self) -> int | None:
        return self.size.size_bytes if self.size is not None else None

    @property
    def frees_bytes(self) -> int | None:
        """What deleting it would free at most, None before it was measured."""
        return self.size.frees_bytes if self.size is not None else None

    @property
    def workspaces(self) -> int:
        return self.pins.workspaces_number

    @property
    def holders(self) -> str:
        """The workspaces that need it, by name, and what keeps it besides."""
        names = [_called(each) for each in self.pins.workspaces]
        more = [f"{self.pins.more:,} more"] if self.pins.more else []
        return "; ".join([*names, *more, *self.kept_for])

    @property
    def kept_for(self) -> list[str]:
        """What keeps it besides workspaces, as phrases."""
        others = self.snapshot.clones_of_others
        if not others:
            return self.pins.reasons
        clones = "1 other clone" if others == 1 else f"{others:,} other clones"
        return [*self.pins.reasons, clones]

    @property
    def freed_by(self) -> str:
        """A sentence on what would free it."""
        if self.kept_for:
            return "Nothing yet."
        if not self.workspaces:
            return "Retention deletes it within minutes."
        if self.workspaces == 1:
            return f"Retire and purge {_called(self.pins.workspaces[0])}, or split it."
        return f"Retire and purge all {self.workspaces:,}, or split them."


@dataclass(frozen=True, kw_only=True)
class CeilingRow:
    """A purpose at a site, and its ceiling, if it has one."""

    site: Site
    purpose: Ceiling.Purpose
    ceiling: Ceiling | None

    @property
    def limits(self) -> str:
        """A phrase on the limits."""
        ceiling = self.ceiling
        if ceiling is None:
            return "None"
        if not ceiling.has_limits:
            return "Being removed"
        limits = [
            f"{most:,} {unit}"
            for most, unit in (
                (ceiling.max_iops, "IOPS"),
                (ceiling.max_mbps, "MB/s"),
            )
            if most is not None
        ]
        way = "all together" if ceiling.is_shared else "each volume"
        return f"{', '.join(limits)} ({way})"

    @property
    def reached(self) -> str:
        """How many volumes below it reached it; empty before ONTAP was asked."""
        ceiling = self.ceiling
        if ceiling is None or ceiling.kept_at is None or not ceiling.has_limits:
            return ""
        volumes = "volume" if ceiling.volumes == 1 else "volumes"
        return f"{ceiling.at_ceiling:,} of {ceiling.volumes:,} {volumes}"


def ceilings_of(sites: Iterable[Site]) -> list[CeilingRow]:
    """Return the ceilings of sites by purpose, in the order of the sites."""
    sites = list(sites)
    found = {
        (row.site_id, row.purpose): row
        for row in Ceiling.objects.filter(site__in=sites)
    }
    return [
        CeilingRow(site=site, purpose=purpose, ceiling=found.get((site.pk, purpose)))
        for site in sites
        for purpose in Ceiling.Purpose
    ]


@dataclass(frozen=True, kw_only=True)
class VolumePolicyRow:
    """The settings of the volumes of a site's templates, or of one template's."""

    site: Site
    template: Template | None = None
    policy: VolumePolicy | None = None

    @property
    def settings(self) -> str:
        """What was set, as people read it; empty for nothing."""
        policy = self.policy
        if policy is None:
            return ""
        labels = {
            "autosize_mode": f"autosize: {policy.get_autosize_mode_display().lower()}",
            "autosize_max_percent": f"up to {policy.autosize_max_percent} %",
            "snapshot_reserve_percent": f"reserve {policy.snapshot_reserve_percent} %",
            "guarantee": policy.get_guarantee_display().lower(),
            "fractional_reserve": f"fractional reserve {policy.fractional_reserve} %",
            "security_style": policy.get_security_style_display(),
            "headroom_percent": f"clones {policy.headroom_percent} % larger",
            "build_headroom_percent": "clones for builds "
            f"{policy.build_headroom_percent} % larger",
            "clone_grow_percent": f"full clones grow by {policy.clone_grow_percent} %",
            "clone_grow_max_percent": f"up to {policy.clone_grow_max_percent} % of "
            "their template",
            "min_inodes": f"at least {policy.min_inodes or 0:,} inodes",
        }
        return ", ".join(labels[name] for name in policy.settings)


def volume_policies_of(sites: Iterable[Site]) -> list[VolumePolicyRow]:
    """Return the defaults of each site, followed by what its templates have instead."""
    sites = list(sites)
    found = defaultdict[int, list[VolumePolicy]](list)
    policies = VolumePolicy.objects.filter(site__in=sites).select_related("template")
    for policy in policies.order_by("template__name"):
        found[policy.site_id].append(policy)
    rows = []
    for site in sites:
        own = [each for each in found[site.pk] if each.template is None]
        rows.append(VolumePolicyRow(site=site, policy=own[0] if own else None))
        rows += [
            VolumePolicyRow(site=site, template=each.template, policy=each)
            for each in found[site.pk]
            if each.template is not None and each.settings
        ]
    return rows


@dataclass(frozen=True, kw_only=True)
class DueSplit:
    """A workspace that a site's policy would split now."""

    workspace: Workspace
    snapshot: Snapshot
    frees_bytes: int
    copies_bytes: int


def due_splits(policy: SplitPolicy, *, now: dt.datetime) -> list[DueSplit]:
    """Return what a site's policy would split now, whether it is switched on or not.

    What would copy as much as it frees is left out, as is what was not measured and
    what is copied to another site.
    """
    aged = Workspace.objects.clones().filter(
        ~IS_SENT,
        site=policy.site,
        template__site=policy.site,
        state=Workspace.State.READY,
        is_pooled=False,
        ready_at__lte=now - dt.timedelta(days=policy.older_than_days),
        split_bytes__isnull=False,
    )
    by_snapshot = {each.snapshot_id: each for each in aged.select_related("owner")}
    return [
        DueSplit(
            workspace=by_snapshot[row.snapshot.pk],
            snapshot=row.snapshot,
            frees_bytes=row.frees_bytes,
            copies_bytes=copies,
        )
        for row in held(Snapshot.objects.filter(pk__in=by_snapshot))
        if row.workspaces == 1 and not row.kept_for and row.frees_bytes is not None
        for copies in [by_snapshot[row.snapshot.pk].split_bytes or 0]
        if row.frees_bytes >= policy.pinned_bytes and copies < row.frees_bytes
    ]


def _called(workspace: object) -> str:
    is_pooled = getattr(workspace, "is_pooled", False)
    return f"{workspace} (pool)" if is_pooled else str(workspace)


def snapshots_matching(
    user: User, *, text: str = "", site: str = ""
) -> QuerySet[Snapshot]:
    """Return the published snapshots that match all words of a text.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    named = with_words(Snapshot.objects.there(), text, "template__name", "name")
    return named.filter(template__site__name=site) if site else named


def held(snapshots: Iterable[Snapshot]) -> list[HeldSnapshot]:
    """Return what holds each of these; few queries for many."""
    snapshots = list(snapshots)
    ids = {snapshot.template_id for snapshot in snapshots}
    templates = list(Template.objects.filter(pk__in=ids).select_related("site"))
    pins = {pin.snapshot.pk: pin for pin in pins_of_all(templates, named=NAMED)}
    sizes = SnapshotSize.objects.filter(snapshot__in=snapshots)
    by_snapshot = {size.snapshot_id: size for size in sizes}
    return [
        HeldSnapshot(pins=pins[each.pk], size=by_snapshot.get(each.pk))
        for each in snapshots
        if each.pk in pins
    ]
