"""How a workspace is cloned. Each step is safe to repeat."""

from __future__ import annotations

import contextlib

from provisioner.cloning.models import WorkspaceClone
from provisioner.gateways.errors import AlreadyExists
from provisioner.lib import clocks
from provisioner.lib.refusals import StepRefused
from provisioner.workspaces.steps import provision, recording
from provisioner.workspaces.steps.provision import Clone, Flushed
from provisioner.workspaces.steps.run import WorkspaceRun
from provisioner.workspaces.steps.unsubmitted import our_volume


def _cloning(run: WorkspaceRun) -> WorkspaceClone:
    rows = WorkspaceClone.objects.select_related("source__site__perforce_server")
    return rows.get(workspace=run.workspace)


def ensure_snapshot(run: WorkspaceRun) -> None:
    """Ensure a snapshot of the source. An earlier one that was chosen is there.

    Raises: StepRefused.
    """
    cloning = _cloning(run)
    volume = our_volume(run.at(cloning.source))
    if volume is None:
        raise StepRefused(
            f"The clone {cloning.source.volume_name} of {cloning.source.name} is no "
            f"longer on the SVM {run.site.svm}, so it cannot be cloned.",
            code="clone_is_gone",
        )
    if not cloning.has_own_snapshot or cloning.taken_at is not None:
        return
    with contextlib.suppress(AlreadyExists):  # our own, before a lost reply
        run.ontap.create_snapshot(
            volume.uuid,
            name=cloning.snapshot_name,
            comment=run.workspace.volume_comment,
        )
    with run.writing():
        WorkspaceClone.objects.filter(pk=cloning.pk).update(
            taken_at=clocks.database_now()
        )


def ensure_recorded(run: WorkspaceRun) -> None:
    """Record what the source's client has, once.

    Raises: StepRefused.
    """
    cloning = _cloning(run)
    if cloning.recorded_at is not None:
        return
    known = recording.read_client(cloning.source, before=None)
    del known["accessed_at"]
    with run.writing():
        WorkspaceClone.objects.filter(pk=cloning.pk).update(
            recorded_at=clocks.database_now(), **known
        )


def ensure_clone(run: WorkspaceRun) -> Clone:
    """Ensure a FlexClone of the source's snapshot. The source stays as it is.

    Raises: StepRefused.
    """
    return provision.clone_of(
        run,
        parent_volume=run.workspace.cloned_from,
        parent_snapshot=_cloning(run).snapshot_name,
    )


def ensure_flushed(run: WorkspaceRun) -> Flushed:
    """Ensure that the have list is what the source's was."""
    return recording.flush_as_recorded(run, _cloning(run))


def ensure_opened(run: WorkspaceRun) -> None:
    """Open the files that were opened, as the clone's owner.

    The operation records which files could not be opened.
    """
    recording.open_as_recorded(run, _cloning(run), user=run.workspace.p4_user)
