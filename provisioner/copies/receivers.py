"""What copies need of workspaces and mirrors."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from django.db.models import Count, F, Q, QuerySet
from django.dispatch import receiver

from provisioner.accounts.models import User
from provisioner.accounts.system import system_user
from provisioner.audit_log.models import Event
from provisioner.audit_log.queries import register_visible
from provisioner.catalog.models import Snapshot
from provisioner.catalog.retention import Hold, register_hold
from provisioner.copies.actions import begin_deletion
from provisioner.copies.models import WorkspaceCopy
from provisioner.copies.queries import copies_at_mirror, copies_visible_to, rule_at
from provisioner.copies.refusals import CopiesLeadThere, CopyBusy
from provisioner.gateways.errors import Busy
from provisioner.mirrors.events import before_deleting
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.queries import register_clones
from provisioner.workspaces.events import clone_goes
from provisioner.workspaces.models import Workspace


@receiver(clone_goes)
def delete_copies_first(workspace: Workspace, **kwargs: Any) -> None:
    """Hold a purge until the copies are gone: ONTAP keeps a source of SnapMirror.

    Raises: Busy.
    """
    copies = WorkspaceCopy.objects.filter(workspace=workspace, is_released=False)
    for copy in copies.select_related("workspace", "site"):
        if not copy.is_moving:
            with contextlib.suppress(CopyBusy):
                begin_deletion(by=system_user(), copy=copy)
        why = f" {copy.status_message}" if copy.status_message else ""
        raise Busy(
            f"Its copy at {copy.site.name} is being deleted first.{why}",
            system="cloneyard",
            operation="purge",
        )


@receiver(before_deleting)
def refuse_while_copies_lead_there(mirror: Mirror, **kwargs: Any) -> None:
    """Refuse to delete a mirror that a rule needs: no copies end unnoticed.

    Raises: CopiesLeadThere.
    """
    if rule_at(mirror) is not None:
        raise CopiesLeadThere(site=mirror.site.name)


def _events_visible_to(user: User) -> Q:
    visible = copies_visible_to(user).order_by().values("pk")
    return Q(subject_kind=Event.SubjectKind.COPY, subject_id__in=visible)


def _held_at_home(snapshots: Sequence[Snapshot]) -> QuerySet[Snapshot]:
    """Return those of these that copies at the template's own site are clones of."""
    return (
        Snapshot.objects.filter(
            workspaces__copies__in=WorkspaceCopy.objects.with_volume(),
            workspaces__copies__site=F("template__site"),
            pk__in=[snapshot.pk for snapshot in snapshots],
        )
        .annotate(snapshot_id=F("pk"), copies=Count("workspaces__copies"))
        .only("pk")
        .order_by()
    )


def _says(snapshot: Snapshot) -> str:
    number: int = vars(snapshot)["copies"]
    if number == 1:
        return "a copy of a workspace is a clone of it"
    return f"{number:,} copies of workspaces are clones of it"


register_visible(_events_visible_to)
register_hold(Hold(rows=_held_at_home, says=_says))
register_clones(copies_at_mirror)
