"""What copies need of workspaces and mirrors."""

from __future__ import annotations

import contextlib
from typing import Any

from django.db.models import Q
from django.dispatch import receiver

from provisioner.accounts.models import User
from provisioner.accounts.system import system_user
from provisioner.audit_log.models import Event
from provisioner.audit_log.queries import register_visible
from provisioner.copies.actions import begin_deletion
from provisioner.copies.models import WorkspaceCopy
from provisioner.copies.queries import copies_at_mirror, copies_visible_to
from provisioner.copies.refusals import CopyBusy
from provisioner.gateways.errors import Busy
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


def _events_visible_to(user: User) -> Q:
    visible = copies_visible_to(user).order_by().values("pk")
    return Q(subject_kind=Event.SubjectKind.COPY, subject_id__in=visible)


register_visible(_events_visible_to)
register_clones(copies_at_mirror)
