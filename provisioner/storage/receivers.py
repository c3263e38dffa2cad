"""What workspaces ask of splits: who stays; and what a measurement leads to."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from django.dispatch import receiver

from provisioner.engine.models import Operation
from provisioner.lib.refusals import ActionRefused
from provisioner.limits.events import site_measured
from provisioner.sites.models import Site
from provisioner.storage.filling import note_filling
from provisioner.storage.growing import grow_full_volumes
from provisioner.storage.refusals import BeingSplit
from provisioner.workspaces.events import asks_what_stays
from provisioner.workspaces.models import SPLITS, Workspace


@receiver(asks_what_stays)
def refuse_while_being_split(
    workspaces: Sequence[Workspace], **kwargs: Any
) -> dict[int, ActionRefused]:
    """Refuse to end workspaces that ONTAP splits: it would not delete the volume."""
    running = Operation.objects.filter(
        subject__in=[workspace.subject_id for workspace in workspaces],
        kind__in=SPLITS,
        state=Operation.State.RUNNING,
    )
    subjects = set(running.values_list("subject", flat=True))
    return {
        workspace.pk: BeingSplit(name=workspace.name)
        for workspace in workspaces
        if workspace.subject_id in subjects
    }


@receiver(site_measured)
def tell_of_filling_volumes(site: Site, at: dt.datetime, **kwargs: Any) -> None:
    """Grow what may grow of a site's full volumes, and tell people of those."""
    grow_full_volumes(site, now=at)
    note_filling(site, now=at)
