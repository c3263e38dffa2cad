"""Reactions of mirrors to builds, and what they need of templates and snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet
from django.dispatch import receiver

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.audit_log.queries import register_visible
from provisioner.catalog.dependents import Dependent, register_dependent
from provisioner.catalog.events import before_building, template_built
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.retention import Hold, register_hold
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.mirrors.overviews import mirrors_ever
from provisioner.mirrors.refusals import HomeMoves
from provisioner.mirrors.sweeps import transfer_next


@receiver(template_built)
def transfer_at_once(template: Template, **kwargs: Any) -> None:
    """Begin to transfer the new default snapshot to the mirrors that rest."""
    for mirror in Mirror.objects.filter(
        template=template, start=Mirror.Start.AT_ONCE, state=Mirror.State.READY
    ).select_related("template", "site"):
        transfer_next(mirror)


@receiver(before_building)
def refuse_while_home_moves(template: Template, **kwargs: Any) -> None:
    """Refuse a build while a mirror becomes the template's home.

    Raises: HomeMoves.
    """
    promoting = Mirror.objects.filter(template=template, state=Mirror.State.PROMOTING)
    mirror = promoting.select_related("site").first()
    if mirror is not None:
        raise HomeMoves(template=template.name, site=mirror.site.name)


# What mirrors need: transfers under way, and the newest there, from which ONTAP
# continues. Put together once.
_NEWEST = (
    MirroredSnapshot.objects.filter(state=MirroredSnapshot.State.AVAILABLE)
    .order_by("mirror_id", "-arrived_at")
    .distinct("mirror_id")
)
_NEEDED = (
    MirroredSnapshot.objects.filter(
        Q(pk__in=_NEWEST.values("pk")) | Q(state=MirroredSnapshot.State.TRANSFERRING)
    )
    .select_related("mirror__site")
    .only("snapshot_id", "mirror__site__name")
    .order_by()
)


def _needed(snapshots: Sequence[Snapshot]) -> QuerySet[MirroredSnapshot]:
    """Return what mirrors need of these."""
    return _NEEDED.filter(snapshot__in=snapshots)


def _events_visible_to(user: User) -> Q:
    visible = mirrors_ever(user).order_by().values("pk")
    return Q(subject_kind=Event.SubjectKind.MIRROR, subject_id__in=visible)


register_visible(_events_visible_to)
register_hold(
    Hold(
        rows=_needed,
        says=lambda row: f"the mirror at {row.mirror.site.name} continues from it",
    )
)
register_dependent(
    Dependent(
        one="mirror",
        many="mirrors",
        rows=lambda template: Mirror.objects.filter(template=template),
    )
)
