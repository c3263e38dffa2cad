"""What could be retired, split or pruned at a site, and the plan that frees enough."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.retention import pins_of_all
from provisioner.copies.queries import IS_SENT
from provisioner.leases.abandonment import looks_abandoned
from provisioner.sites.models import Site
from provisioner.storage.models import SnapshotSize
from provisioner.storage.planning import Act, Held, Holder, Kind, Plan, plan
from provisioner.workspaces.models import Workspace

ABANDONED_WEIGHT, UNUSED_WEIGHT, SPLIT_WEIGHT, IDLE_WEIGHT = 1, 2, 4, 10
IDLE_AFTER = dt.timedelta(days=7)


@dataclass(frozen=True, kw_only=True)
class PlannedAct:
    """One act of a plan, with the row that it is about and why it was chosen."""

    act: Act
    row: Workspace | Snapshot
    why: str

    @property
    def workspace_id(self) -> int | None:
        return None if self.act.kind is Kind.PRUNE else self.act.key

    @property
    def snapshot_id(self) -> int | None:
        return self.act.key if self.act.kind is Kind.PRUNE else None

    @property
    def verb(self) -> str:
        return self.act.kind.value.capitalize()


@dataclass(frozen=True, kw_only=True)
class SpacePlan:
    """A plan for a site. `seal` tells whether it is still the one that was shown."""

    site: Site
    plan: Plan
    acts: list[PlannedAct]
    unmeasured: int

    @property
    def seal(self) -> str:
        told = [(act.kind.value, act.key) for act in self.plan.acts]
        return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def space_plan(
    user: User,
    *,
    site: Site,
    wanted_bytes: int,
    now: dt.datetime,
    includes_work: bool = False,
) -> SpacePlan:
    """Return the lightest plan that frees so much at a site. Nothing is done.

    Abandoned workspaces come first, then those never used, then idle ones. One that may
    hold unsubmitted work is left out unless `includes_work`.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    there = list(
        Workspace.objects.there()
        .filter(site=site)
        .annotate(is_sent=IS_SENT)
        .select_related("owner", "template")
    )
    abandoned = set(
        Workspace.objects.filter(
            looks_abandoned(now=now), site=site, state=Workspace.State.READY
        ).values_list("pk", flat=True)
    )
    holders, why = dict[int, Holder](), dict[int, str]()
    for workspace in there:
        weight, reason = _weight(workspace, abandoned=abandoned, now=now)
        if not includes_work and may_hold_work(workspace):
            weight = None
        why[workspace.pk] = reason
        holders[workspace.pk] = _holder(workspace, retire_weight=weight)
    pruned, held = _held(site, there, holders)
    found = plan(held, wanted_bytes=wanted_bytes)
    rows = {workspace.pk: workspace for workspace in there}
    return SpacePlan(
        site=site,
        plan=found,
        acts=[
            PlannedAct(
                act=act,
                row=pruned[act.key] if act.kind is Kind.PRUNE else rows[act.key],
                why=_why(act, why),
            )
            for act in found.acts
        ],
        unmeasured=sum(workspace.unique_bytes is None for workspace in there),
    )


def may_hold_work(workspace: Workspace) -> bool:
    """Return whether signs of unsubmitted work were seen, or none were looked for."""
    if not workspace.holds_work:
        return False
    if workspace.activity_seen_at is None or workspace.ready_at is None:
        return True
    signs = {kind: sign or {} for kind, sign in workspace.activity.items()}
    at = {kind: sign.get("at") for kind, sign in signs.items()}
    files_at = at.get("files")
    has_changed = bool(
        files_at and dt.datetime.fromisoformat(files_at) > workspace.ready_at
    )
    has_opened = bool(signs.get("opened", {}).get("count"))
    return has_changed or has_opened or bool(at.get("pending") or at.get("shelved"))


def _weight(
    workspace: Workspace, *, abandoned: set[int], now: dt.datetime
) -> tuple[int | None, str]:
    """Return how much a retirement weighs, None if it is out of the question, and why.

    Who kept a workspace without an end wants to keep it.
    """
    is_ready = workspace.state == Workspace.State.READY
    if not is_ready or workspace.is_pooled or workspace.keep_reason:
        return None, ""
    assert workspace.idle_since is not None
    if workspace.pk in abandoned:
        return ABANDONED_WEIGHT, "It looks abandoned."
    if workspace.idle_since > now - IDLE_AFTER:
        return None, ""
    days = (now - workspace.idle_since).days
    if workspace.worked_at is None:
        return UNUSED_WEIGHT, f"It was never used in {days} days."
    return IDLE_WEIGHT, f"No work shows for {days} days."


def _holder(workspace: Workspace, *, retire_weight: int | None) -> Holder:
    can_split = (
        workspace.state == Workspace.State.READY
        and not workspace.is_pooled
        and not workspace.is_independent
        and not vars(workspace)["is_sent"]
        and workspace.split_bytes is not None
    )
    return Holder(
        key=workspace.pk,
        own_bytes=workspace.unique_bytes or 0,
        retire_weight=retire_weight,
        split_bytes=workspace.split_bytes or 0,
        split_weight=SPLIT_WEIGHT if can_split else None,
    )


def _held(
    site: Site, there: Iterable[Workspace], holders: dict[int, Holder]
) -> tuple[dict[int, Snapshot], list[Held]]:
    """Return the snapshots of a site by key, and what holds each.

    Workspaces at another site, of a mirror, keep a snapshot as others do.
    """
    templates = list(Template.objects.filter(site=site).order_by("pk"))
    pins = pins_of_all(templates, named=0)
    sizes = {
        size.snapshot_id: size.frees_bytes
        for size in SnapshotSize.objects.filter(snapshot__template__site=site)
    }
    of_snapshot: dict[int, list[Holder]] = {pin.snapshot.pk: [] for pin in pins}
    alone: list[Holder] = []
    for workspace in there:
        is_clone = not workspace.is_independent
        group = of_snapshot.get(workspace.snapshot_id) if is_clone else None
        (alone if group is None else group).append(holders[workspace.pk])
    counted = Counter({pk: len(group) for pk, group in of_snapshot.items()})
    held = [
        Held(
            key=pin.snapshot.pk,
            frees_bytes=sizes.get(pin.snapshot.pk, 0),
            is_kept=bool(pin.reasons or pin.snapshot.clones_of_others)
            or pin.workspaces_number > counted[pin.snapshot.pk],
            holders=tuple(of_snapshot[pin.snapshot.pk]),
        )
        for pin in pins
    ]
    others = Held(key=None, frees_bytes=0, is_kept=True, holders=tuple(alone))
    return {pin.snapshot.pk: pin.snapshot for pin in pins}, [*held, others]


def _why(act: Act, why: dict[int, str]) -> str:
    if act.kind is Kind.RETIRE:
        return why[act.key]
    if act.kind is Kind.SPLIT:
        return "It stays; its snapshot is needed by nothing else then."
    return "Nothing needs it."
