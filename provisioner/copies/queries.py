"""Which copies there are, which are due, and what stands against a transfer."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from provisioner.accounts.models import User
from provisioner.catalog.queries import in_scope
from provisioner.copies.models import CopiedSnapshot, CopyRule, WorkspaceCopy
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.mirrors.queries import AVAILABLE
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import workspaces_visible_to

RETRIED_AFTER = dt.timedelta(minutes=10)
AT_ONCE = 4
"""How many copies are transferred to a site at the same time."""

_STAYS = (
    Workspace.State.READY,
    Workspace.State.RETIRING,
    Workspace.State.RESTORING,
    Workspace.State.FAILED,
)


def copies_visible_to(user: User) -> QuerySet[WorkspaceCopy]:
    """Return the copies of the workspaces that a person may see."""
    return WorkspaceCopy.objects.filter(
        workspace__in=workspaces_visible_to(user).order_by().values("pk")
    ).select_related(
        "workspace__owner", "workspace__site", "workspace__snapshot", "mirror", "site"
    )


def rules_visible_to(user: User) -> QuerySet[CopyRule]:
    """Return the rules of mirrors whose template a person may see."""
    return (
        CopyRule.objects.filter(in_scope(user, by="mirror__template"))
        .exclude(mirror__state=Mirror.State.DELETED)
        .select_related("mirror__template__site", "mirror__site")
    )


def rules() -> QuerySet[CopyRule]:
    """Return the rules of mirrors that exist and can be used."""
    usable = (Mirror.State.READY, Mirror.State.TRANSFERRING)
    return CopyRule.objects.filter(mirror__state__in=usable).select_related(
        "mirror__template", "mirror__site"
    )


def workspaces_without_copy(rule: CopyRule) -> QuerySet[Workspace]:
    """Return the workspaces that a rule wants copied and that have no copy."""
    mirror = rule.mirror
    copies = WorkspaceCopy.objects.filter(workspace=OuterRef("pk"), mirror=mirror)
    return Workspace.objects.filter(
        ~Exists(copies),
        _is_wanted(rule),
        state=Workspace.State.READY,
        site=mirror.template.site_id,
    ).order_by("pk")


def _is_wanted(rule: CopyRule, *, by: str = "") -> Q:
    return Q(
        **{
            f"{by}template": rule.mirror.template_id,
            f"{by}purpose__in": rule.purposes,
            f"{by}is_pooled": False,
        }
    )


def superfluous_copies(*, now: dt.datetime) -> Iterator[WorkspaceCopy]:
    """Yield resting copies that nobody wants: of what is put away, or of no rule."""
    rules_by_mirror = {rule.mirror_id: rule for rule in CopyRule.objects.all()}
    for copy in _resting(now=now):
        rule = rules_by_mirror.get(copy.mirror_id)
        is_wanted = (
            rule is not None
            and copy.workspace.purpose in rule.purposes
            and copy.workspace.state in _STAYS
            and not copy.is_released
        )
        if not is_wanted:
            yield copy


def _resting(*, now: dt.datetime) -> QuerySet[WorkspaceCopy]:
    states = (WorkspaceCopy.State.WAITING, WorkspaceCopy.State.READY)
    failed = Q(state=WorkspaceCopy.State.FAILED, failed_at__lt=now - RETRIED_AFTER)
    return (
        WorkspaceCopy.objects.filter(Q(state__in=states) | failed)
        .select_related(
            "workspace__site", "workspace__snapshot", "mirror__template", "site"
        )
        .order_by("due_at", "pk")
    )


def due_copies(*, now: dt.datetime) -> Iterator[WorkspaceCopy]:
    """Yield the copies whose transfer is due, as many as may run at each site."""
    running = WorkspaceCopy.objects.filter(state=WorkspaceCopy.State.TRANSFERRING)
    room: dict[int, int] = {}
    there = MirroredSnapshot.objects.filter(
        mirror=OuterRef("mirror"), snapshot=OuterRef("workspace__snapshot")
    )
    has_base = Exists(there.filter(state=AVAILABLE))
    due = _resting(now=now).filter(
        has_base | ~Q(relationship_uuid=""),
        due_at__lte=now,
        is_released=False,
        workspace__state=Workspace.State.READY,
        mirror__in=rules().values("mirror"),
    )
    for copy in due:
        if copy.workspace.is_independent and not copy.relationship_uuid:
            continue
        if copy.site_id not in room:
            room[copy.site_id] = AT_ONCE - running.filter(site=copy.site).count()
        if room[copy.site_id] > 0:
            room[copy.site_id] -= 1
            yield copy


def obstacle_of(copy: WorkspaceCopy, *, has_base: bool) -> str:
    """Return what keeps a copy from its next transfer, "" for nothing known.

    `has_base`: the mirror has the snapshot that the workspace is a clone of.
    """
    if copy.state == WorkspaceCopy.State.FAILED:
        return copy.status_message
    mirror = copy.mirror
    if mirror.state == Mirror.State.PROMOTED:
        return (
            f"{copy.site.name} is the template's home now, so nothing more is sent. "
            "Restore the workspace there."
        )
    if mirror.state not in (Mirror.State.READY, Mirror.State.TRANSFERRING):
        return f"The mirror at {copy.site.name} is not ready."
    if not copy.relationship_uuid and copy.workspace.is_independent:
        return (
            "It is independent of its snapshot, so all of it would be sent. It is not "
            "copied."
        )
    if not copy.relationship_uuid and not has_base:
        return (
            f"Its snapshot {copy.workspace.snapshot.name} is not at {copy.site.name}. "
            "An administrator or the template's owner transfers it to the mirror."
        )
    return ""


def has_base(copy: WorkspaceCopy) -> bool:
    """Return whether the mirror has the snapshot that the workspace is a clone of."""
    return copy.mirror.snapshots.filter(
        snapshot=copy.workspace.snapshot_id, state=AVAILABLE
    ).exists()


def last_arrived(copy: WorkspaceCopy) -> CopiedSnapshot | None:
    """Return the newest snapshot that arrived at the copy's site, or None."""
    arrived = copy.snapshots.filter(arrived_at__isnull=False)
    return arrived.order_by(F("arrived_at").desc()).first()


def copies_at_mirror(mirror: Mirror) -> QuerySet[WorkspaceCopy]:
    """Return the copies that are clones of a mirror."""
    return WorkspaceCopy.objects.filter(mirror=mirror)
