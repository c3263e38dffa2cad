"""The end of a sandbox: stopped, destroyed, and proved to have left nothing."""

from __future__ import annotations

import contextlib

from provisioner.engine import workflow
from provisioner.engine.models import Step
from provisioner.engine.queues import OWN
from provisioner.gateways.errors import Busy, NotFound, Refused
from provisioner.gateways.hosts.scratch import remove_scratch, scratch_left
from provisioner.gateways.ontap.types import ConsistencyGroup
from provisioner.lib.refusals import StepRefused
from provisioner.sandboxes.models import Sandbox
from provisioner.sandboxes.purposes import recipe_of
from provisioner.sandboxes.steps.run import SandboxRun


def ensure_stopped(run: SandboxRun) -> None:
    """End the sandbox's processes, and unmount its clones on this host.

    What its recipe has left half done is removed, and so is what measurements of it
    left that were killed.
    """
    run.program.stop()
    remove_scratch(str(run.sandbox.tag), run.owner)
    recipe_of(run.sandbox).clear(run.sandbox)
    for row in run.volumes:
        run.leave_root(row.junction_path)


def ensure_quiet_elsewhere(run: SandboxRun) -> None:
    """Ensure that no step of an earlier operation runs, but for the lost host's.

    What was begun there can write down nothing any more.

    Raises: Busy.
    """
    at_work = Step.objects.filter(
        operation__subject=run.operation.subject, state=Step.State.RUNNING
    ).exclude(operation=run.operation)
    names = ", ".join(
        step.name
        for step in at_work.select_related("operation__subject")
        if (spec := workflow.find_spec(step)) is None or spec.queue != OWN
    )
    if names:
        raise Busy(
            f"An earlier operation is still running on it: {names}.",
            system="cloneyard",
            operation=run.operation.kind,
        )


def ensure_destroyed(run: SandboxRun) -> None:
    """Destroy the clones. One that is gone, or never was, is success."""
    for row in run.volumes:
        volume = run.ontap.find_volume(row.clone_name)
        if volume is not None and run.sandbox.is_tagged(volume.comment):
            run.ontap.unmount_volume(volume.uuid)
            run.ontap.delete_volume(volume.uuid, force=True)


def ensure_released(run: SandboxRun) -> None:
    """Delete the snapshots of the original's volumes, and our group with the last."""
    name = run.sandbox.snapshot_name
    groups = _groups_known(run)
    for group in groups:
        uuid = run.ontap.find_group_snapshot(group.uuid, name=name)
        if uuid is not None:
            run.ontap.delete_group_snapshot(group.uuid, snapshot_uuid=uuid)
    for row in run.volumes:
        volume = run.ontap.find_volume(row.source)
        if volume is None:
            continue
        snapshot = run.ontap.find_snapshot(volume.uuid, name=name)
        if snapshot is not None:
            run.ontap.delete_snapshot(volume.uuid, snapshot_uuid=snapshot.uuid)
    others = Sandbox.objects.filter(perforce_server=run.server).exclude(
        pk=run.sandbox.pk
    )
    if not others.exists():
        for group in groups:
            if group.name == run.sandbox.group_name:
                run.ontap.delete_group(group.uuid)


def _groups_known(run: SandboxRun) -> list[ConsistencyGroup]:
    """Return the groups that have volumes of the original; [] without groups."""
    sources = {row.source for row in run.volumes}
    with contextlib.suppress(NotFound, Refused):
        return [g for g in run.ontap.list_groups() if sources & set(g.volumes)]
    return []


def ensure_nothing_left(run: SandboxRun) -> None:
    """Prove on the host and at ONTAP that nothing of the sandbox is left.

    Raises: StepRefused.
    """
    left = [f"process {number}" for number in run.program.processes()]
    left += recipe_of(run.sandbox).left(run.sandbox)
    scratch = scratch_left(str(run.sandbox.tag), run.owner)
    left += [f"directory {path}" for path in scratch]
    _require_none_left(left + _at_ontap(run))


def ensure_nothing_left_at_ontap(run: SandboxRun) -> None:
    """Prove at ONTAP alone that nothing of the sandbox is left.

    Raises: StepRefused.
    """
    _require_none_left(_at_ontap(run))


def _at_ontap(run: SandboxRun) -> list[str]:
    sandbox, left = run.sandbox, []
    clones = run.ontap.list_volumes(comment_prefix=sandbox.volume_comment)
    left += [f"volume {volume.name}" for volume in clones]
    for row in run.volumes:
        volume = run.ontap.find_volume(row.source)
        if volume is not None and run.ontap.find_snapshot(
            volume.uuid, name=sandbox.snapshot_name
        ):
            left.append(f"snapshot {sandbox.snapshot_name} of {row.source}")
    return left


def _require_none_left(left: list[str]) -> None:
    if left:
        raise StepRefused(
            f"Something of the sandbox is left: {', '.join(left)}. Retire it again.",
            code="sandbox_left",
        )
